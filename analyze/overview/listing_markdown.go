package overview

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Escaped is a text from files that Markdown leaves as it is.
func Escaped(text string) string { return table.EscapeMarkdown(words.Clean(text)) }

// Markdown lists all findings with their evidence, and what there was too little data for.
func (l *List) Markdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	little := l.Result.In(finding.TooLittle)
	fmt.Fprintf(out, "### %s\n\n", l.Title())
	if len(l.Result.Findings) == 0 {
		listed(out, little)
		little = nil
		fmt.Fprintf(out, "%s\n\n", Escaped(l.looked()))
	}
	for i := range l.Result.Findings {
		f := &l.Result.Findings[i]
		fmt.Fprintf(out, "%d. **%s** (%s)\n", i+1, Escaped(f.Text), f.Remark())
		for _, text := range finding.Sentences(f.Evidence) {
			fmt.Fprintf(out, "   - %s\n", Escaped(text))
		}
		fmt.Fprintf(out, "\n   %s\n\n", codeMarkdown(l.Command(f)))
	}
	if text := l.SumText(); text != "" {
		fmt.Fprintf(out, "%s\n\n", Escaped(text))
	}
	listed(out, little)
	return out.Flush()
}

// listed writes a list of sentences.
func listed(out *bufio.Writer, sentences []string) {
	for _, text := range sentences {
		fmt.Fprintf(out, "- %s\n", Escaped(text))
	}
	if len(sentences) > 0 {
		out.WriteByte('\n')
	}
}

// MarkdownCommands lists the commands that repeat a report, given by their arguments, and those
// that show more of its findings, each once.
func (l *List) MarkdownCommands(w io.Writer, repeat ...[]string) error {
	if len(l.Inputs) == 0 {
		return nil
	}
	var commands []string
	for _, args := range repeat {
		commands = append(commands, words.QuoteShell(slices.Concat([]string{"sgtrace", "report"}, args, l.Again())))
	}
	for i := range l.Result.Findings {
		if c := l.Command(&l.Result.Findings[i]); !slices.Contains(commands, c) {
			commands = append(commands, c)
		}
	}
	out := bufio.NewWriter(w)
	out.WriteString("### Commands to repeat this\n\n")
	for _, c := range commands {
		fmt.Fprintf(out, "- %s\n", codeMarkdown(c))
	}
	return out.Flush()
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
