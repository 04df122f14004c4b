package document

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// hostLevel is the name of the smallest groups, single hosts, which need no file.
const hostLevel = "host"

// Hosts are groups of hosts, as listed by the user. The zero value has none.
type Hosts struct {
	// Levels are the names of the kinds of groups, the smallest first: "node", "rack".
	Levels []string
	groups map[string][]string // by host, then by level; "" if unknown
}

// ReadHosts reads a CSV file with a header: the column host, followed by kinds of groups, the smallest
// first, such as node and rack. A # begins a comment line. Errors name the file and the line.
func ReadHosts(r io.Reader, name string) (*Hosts, error) {
	rows := csv.NewReader(r)
	rows.Comment, rows.TrimLeadingSpace = '#', true
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: is empty; want a header such as host,node,rack", name)
	}
	if err != nil {
		return nil, at(name, err)
	}
	if header[0] = strings.TrimPrefix(header[0], "\ufeff"); header[0] != hostLevel || len(header) < 2 {
		return nil, fmt.Errorf("%s:1: want a header such as host,node,rack, the smallest group first; it is %.80q", name, strings.Join(header, ","))
	}
	h := &Hosts{Levels: header[1:], groups: map[string][]string{}}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err != nil {
			return nil, at(name, err)
		}
		if err := h.add(row[0], row[1:]); err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}

// add records the groups of a host.
func (h *Hosts) add(host string, groups []string) error {
	switch before, known := h.groups[host]; {
	case host == "":
		return errors.New("no host")
	case known && !slices.Equal(before, groups):
		return fmt.Errorf("%s is there twice, in different groups", host)
	}
	h.groups[host] = groups
	return nil
}

// at adds the file and the line to an error of the CSV reader.
func at(name string, err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("%s:%d: %w", name, parse.Line, parse.Err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// levels returns the names of all levels, the smallest first.
func (h *Hosts) levels() []string {
	if h == nil {
		return []string{hostLevel}
	}
	return append([]string{hostLevel}, h.Levels...)
}

// group returns the group of a host at a level; "" if unknown. If the file doesn't have the
// full name of a host, the part before the first dot counts.
func (h *Hosts) group(level int, host string) string {
	if level == 0 || host == "" {
		return host
	}
	groups, known := h.groups[host]
	if !known {
		short, _, _ := strings.Cut(host, ".")
		if groups, known = h.groups[short]; !known {
			return ""
		}
	}
	return groups[level-1]
}

// title returns the title of a group: "node7", "rack r12".
func (h *Hosts) title(level int, group string) string {
	if level == 0 {
		return group
	}
	return h.Levels[level-1] + " " + group
}
