package finders

import (
	"fmt"
	"strings"
)

// Markdown is a list of finders as docs and help have it: a table with a row each.
func Markdown(list []Finder) string {
	var b strings.Builder
	b.WriteString("| kind | what sgtrace looks for | in | severity | cost of |\n|---|---|---|---|---|\n")
	for i := range list {
		f := &list[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Kind, f.Doc, f.Needs, f.Severity, f.CostOf)
	}
	return b.String()
}
