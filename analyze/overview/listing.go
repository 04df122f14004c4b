package overview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// A List is what finders found in some inputs.
type List struct {
	Result *finders.Result
	// Select and Inputs are the arguments of 'sgtrace report' that select and name what
	// is looked at, for the commands that show more.
	Select, Inputs []string
	All            bool // people see all of it as text, and not only the top ones
	// Evidence tells that people see all that speaks for a finding, and not only the first sentences.
	Evidence bool
}

// Again are the arguments that read and select the same once more.
func (l *List) Again() []string { return slices.Concat(l.Select, l.Inputs) }

// Command is the command line that shows more of a finding, as one can paste it into a shell.
func (l *List) Command(f *finding.Finding) string { return f.Command(l.Again()) }

// CommandFor is the command of some arguments of 'sgtrace report' for the same inputs, with the
// word INPUT for long ones.
func (l *List) CommandFor(show []string) string {
	return words.QuoteShell(slices.Concat(finding.CommandLine(show), l.shortAgain()))
}

// shortAgain is Again, with the word INPUT for inputs that would fill the screen.
func (l *List) shortAgain() []string {
	if !l.manyInputs() {
		return l.Again()
	}
	return slices.Concat(l.Select, []string{"INPUT..."})
}

// manyInputs reports whether the inputs are too long to be repeated with every command.
func (l *List) manyInputs() bool {
	const most = 48 // characters: with the command they fit a line
	return len(words.QuoteShell(l.Inputs)) > most && len(l.Inputs) > 1
}

// Top is how many findings people are shown at once.
const Top = 3

// shown is how many of the findings people are shown.
func (l *List) shown() int {
	if l.All {
		return len(l.Result.Findings)
	}
	return min(Top, len(l.Result.Findings))
}

// title heads the list of those that are shown.
func (l *List) title() string {
	if n := len(l.Result.Findings); n > l.shown() {
		return fmt.Sprintf("Top %d of %d findings by cost (--all-findings shows all)", Top, n)
	}
	return l.Title()
}

// Title heads the list of all findings.
func (l *List) Title() string {
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

// looked says what was looked at.
func (l *List) looked() string {
	if looked := l.Result.In(finding.LookedAt); len(looked) > 0 {
		return "Looked at: " + strings.Join(looked, "; ")
	}
	return "'sgtrace inspect' lists what the inputs hold"
}

// MutedText counts the findings that are muted; "" if none is.
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
