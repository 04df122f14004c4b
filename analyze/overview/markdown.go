package overview

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// writeMarkdown writes the overview as a section of a post-mortem.
func (o *Overview) writeMarkdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	out.WriteString("### Summary\n\n")
	for _, f := range o.facts() {
		fmt.Fprintf(out, "- **%s**: %s\n", f.name, table.EscapeMarkdown(words.Clean(f.text)))
	}
	if len(o.Warnings) == 0 {
		fmt.Fprintf(out, "- **trust**: %s\n", trustText)
	}
	for i := range o.Warnings {
		fmt.Fprintf(out, "- **trust**: %s\n", table.EscapeMarkdown(words.Clean(warningMark(&o.Warnings[i])+o.Warnings[i].Text)))
	}
	out.WriteByte('\n')
	if len(o.Latencies) > 0 {
		if err := o.latencyReport().Write(out, table.FormatMarkdown, table.Style{}); err != nil {
			return err
		}
		out.WriteByte('\n')
	}
	fmt.Fprintf(out, "#### %s\n\n", o.findingsTitle())
	if len(o.Findings) == 0 {
		fmt.Fprintf(out, "%s\n\n", table.EscapeMarkdown(words.Clean(o.lookedText())))
	}
	for i := range o.Findings[:o.shown()] {
		o.markdownFinding(out, i)
	}
	for _, text := range o.In(finding.TooLittle) {
		fmt.Fprintf(out, "- %s\n", table.EscapeMarkdown(words.Clean(text)))
	}
	return out.Flush()
}

func (o *Overview) markdownFinding(out *bufio.Writer, i int) {
	f := &o.Findings[i]
	fmt.Fprintf(out, "%d. **%s** (%s)\n", i+1, table.EscapeMarkdown(words.Clean(f.Text)), f.Remark())
	for _, text := range finding.Sentences(f.Evidence) {
		fmt.Fprintf(out, "   - %s\n", table.EscapeMarkdown(words.Clean(text)))
	}
	fmt.Fprintf(out, "\n   %s\n\n", codeMarkdown(o.Command(f)))
}

// codeMarkdown marks text as code, in which nothing has a meaning; the fence is longer
// than any run of backquotes in it.
func codeMarkdown(text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		text = " " + text + " "
	}
	return fence + text + fence
}
