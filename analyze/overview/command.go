package overview

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Command is the command line that shows more of a finding of the overview, as one can
// paste it into a shell.
func (o *Overview) Command(f *finding.Finding) string {
	return f.Command(o.again())
}

// again are the arguments that read and select the same once more.
func (o *Overview) again() []string { return slices.Concat(o.Select, o.Inputs) }

// shortCommand is Command, with the word INPUT for long inputs.
func (o *Overview) shortCommand(f *finding.Finding) string {
	return f.Command(o.shortAgain())
}

// commandFor is the command of some arguments of 'sgtrace report' for the same inputs.
func (o *Overview) commandFor(show []string) string {
	return words.QuoteShell(slices.Concat(finding.CommandLine(show), o.shortAgain()))
}

// shortAgain is again, with the word INPUT for inputs that would fill the screen.
func (o *Overview) shortAgain() []string {
	if !o.manyInputs() {
		return o.again()
	}
	return slices.Concat(o.Select, []string{"INPUT..."})
}

// manyInputs reports whether the inputs are too long to be repeated with every command.
func (o *Overview) manyInputs() bool {
	const most = 48 // characters: with the command they fit a line
	return len(words.QuoteShell(o.Inputs)) > most && len(o.Inputs) > 1
}
