package inputs

import (
	"cmp"
	"fmt"
	"github.com/sgtrace/sgtrace/internal/order"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A reason is why a search left something out.
type reason struct {
	what   string // what it is, in the singular: "hidden file"
	whose  string // qualifies it: "that sgtrace wrote"
	named  bool   // messages list the files by name
	weight int    // position among the reasons
}

// Reasons that do not depend on formats.
var (
	specialFile  = reason{what: "special file", weight: 4}
	linkUp       = reason{what: "looping link", weight: 4}
	hidden       = map[kind]reason{aFile: {what: "hidden file", weight: 5}, aFolder: {what: "hidden folder", weight: 5}, another: {what: "hidden file", weight: 5}}
	excludedFile = reason{what: "file", whose: "by --exclude", weight: 6}
	excluded     = map[kind]reason{aFile: excludedFile, aFolder: {what: "folder", whose: "by --exclude", weight: 6}, another: excludedFile}
	emptyFile    = reason{what: "empty file", named: true, weight: 2}
	otherFile    = reason{what: "other file", weight: 3}
)

// ownFile is the reason for leaving out something that sgtrace wrote.
func ownFile(what string) reason {
	return reason{what: what, whose: "that sgtrace wrote", named: true}
}

// byExtension describes a file of unknown format by its extension. It names only common extensions: others
// may be confidential.
func byExtension(name string) reason {
	ext := strings.ToLower(filepath.Ext(name))
	if ext == "" || !slices.Contains(usualExtensions, ext[1:]) {
		return otherFile
	}
	return reason{what: ext, weight: 2}
}

var usualExtensions = strings.Fields(`bin cfg conf csv db err gz html ipynb jpg json jsonl log md ncu-rep npy npz nsys-rep out parquet pb pdf
	pftrace pickle pkl png pt pth py qdrep rst safetensors sh slurm sqlite svg tar tgz toml tsv txt xlsx xml yaml yml zip zst`)

// leftOut holds the names that a search left out, by reason.
type leftOut map[reason][]string

func (l *leftOut) add(r reason, name string) {
	if *l == nil {
		*l = leftOut{}
	}
	(*l)[r] = append((*l)[r], name)
}

// String says what was left out and why: "2 timelines and 1 page that sgtrace wrote (a.pftrace, b.pftrace,
// c.html), 3 .py, 1 .md".
func (l leftOut) String() string {
	reasons := slices.SortedFunc(maps.Keys(l), func(a, b reason) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), strings.Compare(a.whose, b.whose), cmp.Compare(len(l[b]), len(l[a])), strings.Compare(a.what, b.what))
	})
	var parts []string
	for len(reasons) > 0 {
		n := 1
		for reasons[0].whose != "" && n < len(reasons) && reasons[n].whose == reasons[0].whose {
			n++
		}
		parts = append(parts, l.phrase(reasons[:n]))
		reasons = reasons[n:]
	}
	return strings.Join(parts, ", ")
}

// phrase describes what was left out for reasons with the same qualifier.
func (l leftOut) phrase(reasons []reason) string {
	var counts, names []string
	for _, r := range reasons {
		counts = append(counts, several(len(l[r]), r.what))
		if r.named {
			names = append(names, l[r]...)
		}
	}
	text := counts[len(counts)-1]
	if before := counts[:len(counts)-1]; len(before) > 0 {
		text = strings.Join(before, ", ") + " and " + text
	}
	if whose := reasons[0].whose; whose != "" {
		text += " " + whose
	}
	if len(names) > 0 {
		text += " (" + someOf(names) + ")"
	}
	return text
}

// clone returns a deep copy.
func (l leftOut) clone() leftOut {
	all := leftOut{}
	for r, names := range l {
		all[r] = slices.Clone(names)
	}
	return all
}

// clause returns String as the end of a sentence; "" if nothing was left out.
func (l leftOut) clause() string {
	if len(l) == 0 {
		return ""
	}
	return "; left out " + l.String()
}

// someOf lists the first few files without their folders.
func someOf(names []string) string {
	const most = 3
	bases := order.Each(names[:min(most, len(names))], filepath.Base)
	text := strings.Join(bases, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// several formats a number of things. An extension has no plural: "2 .py". What things are of keeps its number: "2
// files of client records".
func several(n int, what string) string {
	if n == 1 || what[0] == '.' {
		return fmt.Sprintf("%d %s", n, what)
	}
	head, of, found := strings.Cut(what, " of ")
	switch {
	case strings.HasSuffix(head, "y"):
		head = strings.TrimSuffix(head, "y") + "ies"
	case !strings.HasSuffix(head, "s"):
		head += "s"
	}
	if found {
		head += " of " + of
	}
	return fmt.Sprintf("%d %s", n, head)
}
