package table

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// writeMarkdown writes a GitHub table. tablewriter's own renderer leaves | and
// < as they are, and C++ names are full of them.
func (r *Table) writeMarkdown(w io.Writer) error {
	s := r.textTable()
	s.fit(Style{})
	out := bufio.NewWriter(w)
	if r.Title != "" {
		fmt.Fprintf(out, "### %s\n", EscapeMarkdown(words.Clean(r.Title)))
	}
	if len(s.rows) > 0 || len(s.notes) == 0 {
		if r.Title != "" {
			fmt.Fprintln(out)
		}
		s.writeMarkdown(out)
	}
	for _, note := range s.notes {
		fmt.Fprintf(out, "\n*%s*\n", EscapeMarkdown(note))
	}
	return out.Flush()
}

func (s *textTable) writeMarkdown(out *bufio.Writer) {
	writeMarkdownRow(out, s.header)
	for _, right := range s.right {
		rule := "|---"
		if right {
			rule = "|--:"
		}
		out.WriteString(rule)
	}
	out.WriteString("|\n")
	for _, row := range s.rows {
		writeMarkdownRow(out, row)
	}
}

func writeMarkdownRow(out *bufio.Writer, cells []string) {
	for _, c := range cells {
		fmt.Fprintf(out, "| %s ", EscapeMarkdown(c))
	}
	out.WriteString("|\n")
}

// EscapeMarkdown takes away the meaning of everything that ends a cell or
// begins markup; line breaks are gone already.
func EscapeMarkdown(s string) string { return markdownEscapes.Replace(s) }

var markdownEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "~", `\~`,
)
