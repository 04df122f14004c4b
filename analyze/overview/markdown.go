package overview

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// writeMarkdown writes the overview as the draft of a post-mortem: a summary, what happened
// when, all findings with their evidence, and the commands that show more.
func (o *Overview) writeMarkdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	if err := o.markdownSummary(out); err != nil {
		return err
	}
	if events := o.Events(); len(events) > 0 {
		fmt.Fprintf(out, "### Timeline\n\nTimes are in %s, from %s on.\n\n", words.ZoneAt(events[0].At), words.Clock(events[0].At).Format(time.DateOnly))
		for _, e := range events {
			fmt.Fprintf(out, "- **%s** %s\n", words.At(e.At, "15:04:05.0"), Escaped(e.Text))
		}
		out.WriteByte('\n')
	}
	list := o.list()
	if err := out.Flush(); err != nil {
		return err
	}
	if err := list.Markdown(w); err != nil {
		return err
	}
	return list.MarkdownCommands(w, nil, []string{"-o", "report.html"})
}

// markdownSummary says what was read, how far it can be trusted, and how requests did.
func (o *Overview) markdownSummary(out *bufio.Writer) error {
	out.WriteString("### Summary\n\n")
	if len(o.Findings) > 0 {
		fmt.Fprintf(out, "%s. The one that costs most: %s (%s).\n\n", o.list().Title(), Escaped(o.Findings[0].Text), o.Findings[0].CostText())
	}
	for _, f := range o.facts() {
		fmt.Fprintf(out, "- **%s**: %s\n", f.name, Escaped(f.text))
	}
	if len(o.Warnings) == 0 {
		fmt.Fprintf(out, "- **trust**: %s\n", o.trustText())
	}
	for i := range o.Warnings {
		fmt.Fprintf(out, "- **trust**: %s\n", Escaped(warningMark(&o.Warnings[i])+o.Warnings[i].Text))
	}
	out.WriteByte('\n')
	if len(o.Latencies) == 0 {
		return nil
	}
	if err := latencyReport(o.Seen()).Write(out, table.FormatMarkdown, table.Style{}); err != nil {
		return err
	}
	return out.WriteByte('\n')
}
