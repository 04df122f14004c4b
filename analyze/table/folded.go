package table

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// FormatFolded is for tables whose rows are stacks: a line for each, of its frames and its
// weight, as flamegraph.pl, inferno and speedscope read it. Nothing else is in the output.
const FormatFolded Format = "folded"

// A Folding names the columns that make a line of a row.
type Folding struct {
	Stack  string // a text that [FoldStack] made
	Weight string // a number
}

// FoldStack joins the frames of a stack, the outermost first. Frames keep no semicolon, which
// stands between frames, and do not end with a number of its own, which would be a weight:
// "a;b" becomes "a:b", "layer 12" becomes "layer_12".
func FoldStack(frames []string) string {
	var b strings.Builder
	for i, f := range frames {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(foldFrame(f))
	}
	return b.String()
}

func foldFrame(name string) string {
	name = strings.TrimSpace(words.Clean(strings.ReplaceAll(name, ";", ":")))
	if name == "" {
		return "(no name)"
	}
	if i := strings.LastIndexByte(name, ' '); i >= 0 && strings.Trim(name[i+1:], "0123456789.") == "" {
		return name[:i] + "_" + name[i+1:]
	}
	return name
}

// writeFolded writes the rows as folded stacks; an error if they are none, or there are none.
func (r *Table) writeFolded(w io.Writer) error {
	if r.Folding == nil {
		return fmt.Errorf("the rows of table %s are no stacks", r.Name())
	}
	if r.Len() == 0 {
		return fmt.Errorf("table %s is empty: %s", r.Name(), strings.Join(r.Footnotes, "; "))
	}
	stack, err := r.Column(r.Folding.Stack)
	if err != nil {
		return err
	}
	weight, err := r.Column(r.Folding.Weight)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for row := range r.Len() {
		out.WriteString(r.Cell(row, stack).Text)
		out.WriteByte(' ')
		out.WriteString(strconv.FormatInt(r.Cell(row, weight).N, 10))
		out.WriteByte('\n')
	}
	return out.Flush()
}
