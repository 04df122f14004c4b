package overview

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A List is the findings of some inputs, to be printed.
type List struct {
	Result *finders.Result
	// Select and Inputs are the arguments of 'sgtrace report' that select the data and name the inputs. The commands
	// printed with findings repeat them.
	Select, Inputs []string
	All            bool // text shows all findings, not just the top ones
	// Evidence shows all evidence for a finding as text, not just the first sentences.
	Evidence bool
	Played   bool // it is asked what would have been without each finding
}

// Again returns the arguments that read the same inputs with the same selection.
func (l *List) Again() []string { return slices.Concat(l.Select, l.Inputs) }

// command returns the command line that shows more about a finding, quoted for a shell.
func (l *List) command(f *finding.Finding) string { return f.Command(l.Again()) }

// commandFor returns the command line of 'sgtrace report' with the arguments show for the same inputs. Long lists of
// inputs become INPUT.
func (l *List) commandFor(show []string) string {
	return words.QuoteShell(slices.Concat(finding.CommandLine(show), l.shortAgain()))
}

// shortAgain is Again, with INPUT... in place of inputs that would fill the screen.
func (l *List) shortAgain() []string {
	if !l.manyInputs() {
		return l.Again()
	}
	return slices.Concat(l.Select, []string{"INPUT..."})
}

// manyInputs reports whether the inputs are too long to repeat in every command.
func (l *List) manyInputs() bool {
	const most = 48 // characters: these and the command fit on a line
	return len(words.QuoteShell(l.Inputs)) > most && len(l.Inputs) > 1
}

// Top is the number of findings that text shows unless asked for all.
const Top = 3

// shown returns the number of findings that text shows.
func (l *List) shown() int {
	if l.All {
		return len(l.Result.Findings)
	}
	return min(Top, len(l.Result.Findings))
}

// title returns the heading of the findings that text shows.
func (l *List) title() string {
	if n := len(l.Result.Findings); n > l.shown() {
		return fmt.Sprintf("Top %d of %d findings by cost (--all-findings shows all)", Top, n)
	}
	return l.fullTitle()
}

// fullTitle returns the heading of the list of all findings.
func (l *List) fullTitle() string {
	switch n := len(l.Result.Findings); {
	case n == 0 && len(l.Result.In(finding.LookedAt)) == 0:
		return "No findings: not enough data"
	case n == 0 && len(l.Result.Muted) > 0:
		return "Nothing else stands out"
	case n == 0 && len(l.Result.In(finding.TooLittle)) > 0:
		return "Nothing stands out in the rest"
	case n == 0:
		return "Nothing stands out"
	case n == 1:
		return "1 finding"
	default:
		return fmt.Sprintf("%d findings by cost", n)
	}
}

// looked returns the sentence that says what the finders looked at.
func (l *List) looked() string {
	without := ""
	if l.Played {
		without = "There is no cause to take away; 'sgtrace whatif' can still change servers, step times, KV caches, or limits. "
	}
	if looked := l.Result.In(finding.LookedAt); len(looked) > 0 {
		return without + "Looked at: " + strings.Join(looked, "; ")
	}
	return without + "'sgtrace inspect' lists what the inputs hold"
}

// MutedText counts the muted findings by kind. It is empty if none is muted.
func (l *List) MutedText() string {
	if len(l.Result.Muted) == 0 {
		return ""
	}
	n := map[finding.Kind]int{}
	var parts []string
	for i := range l.Result.Muted {
		n[l.Result.Muted[i].Kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%d %s", n[kind], kind))
	}
	return fmt.Sprintf("%s: %s", words.Counted(len(l.Result.Muted), "finding"), strings.Join(parts, ", "))
}

// escaped returns text from an input with everything escaped that Markdown would interpret.
func escaped(text string) string { return table.EscapeMarkdown(words.Clean(text)) }

// Markdown writes all findings with their evidence, and what there was not enough data for.
func (l *List) Markdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	little := l.Result.In(finding.TooLittle)
	fmt.Fprintf(out, "### %s\n\n", l.fullTitle())
	if len(l.Result.Findings) == 0 {
		listed(out, little)
		little = nil
		fmt.Fprintf(out, "%s\n\n", escaped(l.looked()))
	}
	for i := range l.Result.Findings {
		f := &l.Result.Findings[i]
		fmt.Fprintf(out, "%d. **%s** (%s)\n", i+1, escaped(f.Text), f.Remark())
		for _, text := range finding.Sentences(f.Evidence) {
			fmt.Fprintf(out, "   - %s\n", escaped(text))
		}
		if text := f.WithoutText(); text != "" {
			fmt.Fprintf(out, "   - %s\n", escaped(text))
		}
		fmt.Fprintf(out, "\n   %s\n\n", codeMarkdown(l.command(f)))
	}
	if text := l.SumText(); text != "" {
		fmt.Fprintf(out, "%s\n\n", escaped(text))
	}
	listed(out, little)
	return out.Flush()
}

// listed writes a list of sentences.
func listed(out *bufio.Writer, sentences []string) {
	for _, text := range sentences {
		fmt.Fprintf(out, "- %s\n", escaped(text))
	}
	if len(sentences) > 0 {
		out.WriteByte('\n')
	}
}

// markdownCommands lists the commands that repeat the report, one for each element of repeat, and those that show
// more about its findings, without duplicates.
func (l *List) markdownCommands(w io.Writer, repeat ...[]string) error {
	if len(l.Inputs) == 0 {
		return nil
	}
	var commands []string
	for _, args := range repeat {
		commands = append(commands, words.QuoteShell(slices.Concat([]string{"sgtrace", "report"}, args, l.Again())))
	}
	for i := range l.Result.Findings {
		commands = order.With(commands, l.command(&l.Result.Findings[i]))
	}
	out := bufio.NewWriter(w)
	out.WriteString("### Commands to repeat this\n\n")
	for _, c := range commands {
		fmt.Fprintf(out, "- %s\n", codeMarkdown(c))
	}
	return out.Flush()
}

// codeMarkdown formats text as inline code, which Markdown does not interpret. The fence is longer than any run of
// backquotes in the text.
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

// usualWidth is the width of text where the terminal's width is unknown: most terminals have it.
const usualWidth = 80

// MaxWidth is the widest that text gets on a wide terminal, because longer lines are hard to read.
const MaxWidth = 100

// A Printer wraps text at the width of the terminal.
type Printer struct {
	Out   *bufio.Writer
	Width int        // of lines, in columns
	Tone  table.Tone // of the text that Filled prints
	style table.Style
}

// NewPrinter writes to w, which the caller flushes by Out.
func NewPrinter(w io.Writer, style table.Style) *Printer {
	p := &Printer{Out: bufio.NewWriter(w), Width: usualWidth, style: style}
	if style.Width > 0 {
		p.Width = min(max(style.Width, 40), MaxWidth)
	}
	return p
}

// bare is the style of tables that stand between lines of text. Tables may use the whole width of the terminal.
func (p *Printer) bare() table.Style { return table.Style{Width: p.style.Width, ASCII: p.style.ASCII} }

// Filled prints text, wrapped, behind head; all lines but the first are indented by indent columns.
func (p *Printer) Filled(head string, indent int, text string) {
	for i, line := range table.Fill(text, p.Width-twwidth.Width(head), p.Width-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		p.printf("%s\n", strings.TrimRight(head+p.style.Paint(p.Tone, line), " "))
	}
}

// printf prints without wrapping. It turns no-break spaces into ordinary ones.
func (p *Printer) printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.Out.WriteString(p.style.Draw(strings.ReplaceAll(text, "\u00a0", " ")))
}

// severityTones are the tones in which findings are printed.
var severityTones = map[finding.Severity]table.Tone{finding.Critical: table.Bad, finding.Warning: table.Warning}

// maxEvidence is the number of sentences of evidence shown per finding unless asked for all.
const maxEvidence = 2

// Print prints the top findings, or all if asked, and the checks that lacked data. Without findings the latter come
// first, so that "not judged" is not mistaken for "healthy".
func (l *List) Print(p *Printer) {
	little := l.Result.In(finding.TooLittle)
	if len(l.Result.Findings) == 0 {
		for _, text := range little {
			p.Filled("", 0, text)
		}
		little = nil
	}
	p.printf("%s\n", l.title())
	if len(l.Result.Findings) == 0 {
		p.Filled("", 0, l.looked())
	}
	for i := range l.Result.Findings[:l.shown()] {
		f := &l.Result.Findings[i]
		p.Tone = severityTones[f.Severity]
		p.Filled(fmt.Sprintf("%d  ", i+1), 3, fmt.Sprintf("%s (%s)", f.Text, f.Remark()))
		p.Tone = table.Plain
		shown := len(f.Evidence)
		if !l.Evidence {
			shown = min(maxEvidence, shown)
		}
		for k, text := range finding.Sentences(f.Evidence[:shown]) {
			if more := len(f.Evidence) - shown; k == shown-1 && more > 0 {
				text += fmt.Sprintf(" (%d more with --evidence)", more)
			}
			p.Filled("   - ", 5, text)
		}
		if text := f.WithoutText(); text != "" {
			p.Filled("   = ", 5, text)
		}
		p.printf("   $ %s\n", f.Command(l.shortAgain()))
	}
	if text := l.SumText(); text != "" {
		p.Filled("", 0, text)
	}
	if len(l.Result.Findings) > 0 && l.manyInputs() {
		p.Filled("INPUT... ", 9, words.QuoteShell(l.Inputs))
	}
	for _, text := range little {
		p.Filled("", 0, text)
	}
}

// A share is a part of the extra time of requests: the cost of a finding, or the unexplained rest of one cause.
type share struct {
	what    string
	finding *finding.Finding // nil for the unexplained rest
	cause   string           // of the unexplained rest; "" for findings
	part    float64          // of the time of all finished requests
}

// Values of share.what.
const (
	ofFinding   = "finding"
	ofMuted     = "muted finding"
	unexplained = "unexplained"
)

// shares divides the extra time: findings in the order of the list, muted findings, and the unexplained rest by
// cause.
func (l *List) shares() (list []share) {
	for _, of := range [...]struct {
		what  string
		found []finding.Finding
	}{{ofFinding, l.Result.Findings}, {ofMuted, l.Result.Muted}} {
		for i := range of.found {
			if f := &of.found[i]; f.CostBasis == finding.RequestTime && f.Cost > 0 {
				list = append(list, share{what: of.what, finding: f, part: f.Cost})
			}
		}
	}
	for c, part := range l.Result.Sum.Rest {
		if part > 0 {
			list = append(list, share{what: unexplained, cause: cause.Cause(c).String(), part: part})
		}
	}
	return list
}

// SumText says in a sentence how the extra time of requests adds up. It is empty if no finding explains any of it.
// Parts are rounded before they are summed, so that the printed numbers add up.
func (l *List) SumText() string {
	sum := 0.0
	var parts []string
	add := func(part float64, who string) {
		if part = math.Round(1000*part) / 10; part > 0 {
			sum += part
			parts = append(parts, fmt.Sprintf("%.1f %% %s", part, who))
		}
	}
	others, muted := 0.0, 0.0
	for i := range l.Result.Findings {
		switch f := &l.Result.Findings[i]; {
		case f.CostBasis != finding.RequestTime:
		case i < l.shown():
			add(f.Cost, fmt.Sprintf("finding %d", i+1))
		default:
			others += f.Cost
		}
	}
	for i := range l.Result.Muted {
		if f := &l.Result.Muted[i]; f.CostBasis == finding.RequestTime {
			muted += f.Cost
		}
	}
	add(others, "other findings")
	add(muted, "muted findings")
	if len(parts) == 0 {
		return ""
	}
	rest := unexplained
	if c, part := l.Result.Sum.Largest(); part > 0 {
		rest += fmt.Sprintf(" (mostly %s)", c)
	}
	add(l.Result.Sum.Unexplained(), rest)
	if len(parts) == 1 {
		_, who, _ := strings.Cut(parts[0], "% ")
		return fmt.Sprintf("Extra time: %.1f %% of request time, all of it %s", sum, who)
	}
	return fmt.Sprintf("Extra time: %.1f %% of request time = %s", sum, strings.Join(parts, " + "))
}

// sumReport makes the table of shares.
func (l *List) sumReport() *table.Table {
	t := table.New("sgtrace.report.summary.costs/v1", "Extra time of requests", l.shares(), []table.Field[share]{
		table.TextColumn("what", "what the extra time is attributed to: finding, muted finding, or unexplained", func(s *share) string { return s.what }),
		table.TextColumn("id", "ID of the finding", func(s *share) string {
			if s.finding == nil {
				return ""
			}
			return s.finding.ID()
		}),
		table.TextColumn("cause", "for unexplained time, its cause as defined in docs/METRICS.md under Causes", func(s *share) string { return s.cause }),
		table.ShareColumn("share", "share of the time of finished requests; all rows add up to the extra time", func(s *share) float64 { return s.part }),
		table.NsColumn("time", "the same as a total over the requests", func(s *share) int64 { return int64(math.Round(s.part * l.Result.Sum.Ns)) }),
	})
	return t
}
