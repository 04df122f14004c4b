package overview

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
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
			fmt.Fprintf(out, "- **%s** %s\n", words.At(e.At, "15:04:05.0"), escaped(e.Text))
		}
		out.WriteByte('\n')
	}
	fmt.Fprintf(out, "### %s\n\n", o.allFindings())
	if len(o.Findings) == 0 {
		fmt.Fprintf(out, "%s\n\n", escaped(o.lookedText()))
	}
	for i := range o.Findings {
		o.markdownFinding(out, i)
	}
	little := o.In(finding.TooLittle)
	for _, text := range little {
		fmt.Fprintf(out, "- %s\n", escaped(text))
	}
	if len(little) > 0 {
		out.WriteByte('\n')
	}
	o.markdownCommands(out)
	return out.Flush()
}

// escaped is a text from files that Markdown leaves as it is.
func escaped(text string) string { return table.EscapeMarkdown(words.Clean(text)) }

// markdownSummary says what was read, how far it can be trusted, and how requests did.
func (o *Overview) markdownSummary(out *bufio.Writer) error {
	out.WriteString("### Summary\n\n")
	if len(o.Findings) > 0 {
		fmt.Fprintf(out, "%s. The one that costs most: %s (%s).\n\n", o.allFindings(), escaped(o.Findings[0].Text), o.Findings[0].CostText())
	}
	for _, f := range o.facts() {
		fmt.Fprintf(out, "- **%s**: %s\n", f.name, escaped(f.text))
	}
	if len(o.Warnings) == 0 {
		fmt.Fprintf(out, "- **trust**: %s\n", o.trustText())
	}
	for i := range o.Warnings {
		fmt.Fprintf(out, "- **trust**: %s\n", escaped(warningMark(&o.Warnings[i])+o.Warnings[i].Text))
	}
	out.WriteByte('\n')
	if len(o.Latencies) == 0 {
		return nil
	}
	if err := o.latencyReport().Write(out, table.FormatMarkdown, table.Style{}); err != nil {
		return err
	}
	return out.WriteByte('\n')
}

// allFindings heads the list of all findings.
func (o *Overview) allFindings() string {
	if len(o.Findings) > mostFindings {
		return fmt.Sprintf("%d findings by cost", len(o.Findings))
	}
	return o.findingsTitle()
}

// markdownCommands lists the commands that repeat the report and show more, each once.
func (o *Overview) markdownCommands(out *bufio.Writer) {
	if len(o.Inputs) == 0 {
		return
	}
	commands := []string{
		words.QuoteShell(append([]string{"sgtrace", "report"}, o.again()...)),
		words.QuoteShell(append([]string{"sgtrace", "report", "-o", "report.html"}, o.again()...)),
	}
	for i := range o.Findings {
		if c := o.Command(&o.Findings[i]); !slices.Contains(commands, c) {
			commands = append(commands, c)
		}
	}
	out.WriteString("### Commands to repeat this\n\n")
	for _, c := range commands {
		fmt.Fprintf(out, "- %s\n", codeMarkdown(c))
	}
}

func (o *Overview) markdownFinding(out *bufio.Writer, i int) {
	f := &o.Findings[i]
	fmt.Fprintf(out, "%d. **%s** (%s)\n", i+1, escaped(f.Text), f.Remark())
	for _, text := range finding.Sentences(f.Evidence) {
		fmt.Fprintf(out, "   - %s\n", escaped(text))
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
