package finders

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/similar"
)

// Kinds returns the sorted names of all kinds of findings.
func Kinds() []string { return KindsOf(All) }

// KindsOf returns the sorted names of the kinds that some finders look for.
func KindsOf(all []Finder) []string {
	return order.Distinct(order.EachRow(all, func(f *Finder) string { return string(f.Kind) }))
}

// A Mute selects findings that are known already, and need not be reported.
type Mute struct {
	Kind finding.Kind
	// Place is the place of the finding, "decode DP1 TP0", or a prefix of it, "decode"; "" is any place.
	Place string
}

// ParseMute parses KIND or KIND@PLACE.
func ParseMute(text string) (Mute, error) {
	kind, place, at := strings.Cut(text, "@")
	kind, place = strings.TrimSpace(kind), strings.TrimSpace(place)
	switch {
	case !slices.Contains(Kinds(), kind):
		return Mute{}, fmt.Errorf("%.80q: no kind of finding is called %.40q%s 'sgtrace help findings' lists them", text, kind, cmp.Or(similar.Hint(kind, Kinds()), ";"))
	case at && place == "":
		return Mute{}, fmt.Errorf("%.80q: want a place after @, such as %s@decode", text, kind)
	}
	return Mute{finding.Kind(kind), place}, nil
}

// ReadMutes reads a file with a KIND or KIND@PLACE on each line. A # starts a comment.
func ReadMutes(r io.Reader, name string) (list []Mute, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		m, err := ParseMute(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		list = append(list, m)
	}
	return list, lines.Err()
}

// Covers reports whether m selects f.
func (m Mute) Covers(f *finding.Finding) bool {
	at := f.At.String()
	return m.Kind == f.Kind && (m.Place == "" || at == m.Place || strings.HasPrefix(at, m.Place+" "))
}

// Mute moves the findings that any mute covers to Muted.
func (r *Result) Mute(list []Mute) {
	r.Findings = slices.DeleteFunc(r.Findings, func(f finding.Finding) bool {
		covered := slices.ContainsFunc(list, func(m Mute) bool { return m.Covers(&f) })
		if covered {
			r.Muted = append(r.Muted, f)
		}
		return covered
	})
}
