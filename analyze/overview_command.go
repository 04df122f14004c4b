package analyze

import (
	"slices"
	"strings"
)

// Command is the command line that shows more of a finding of the overview, as one can
// paste it into a shell.
func (o *Overview) Command(f *Finding) string {
	return QuoteShell(slices.Concat([]string{"sgtrace", "report"}, f.Show, o.Select, o.Inputs))
}

// shortCommand is Command, with the word INPUT for inputs that would fill the screen.
func (o *Overview) shortCommand(f *Finding) string {
	if !o.manyInputs() {
		return o.Command(f)
	}
	return QuoteShell(slices.Concat([]string{"sgtrace", "report"}, f.Show, o.Select, []string{"INPUT..."}))
}

// manyInputs tells whether the inputs are too long to be repeated with every command.
func (o *Overview) manyInputs() bool {
	const most = 48 // characters: with the command they fit a line
	return len(QuoteShell(o.Inputs)) > most && len(o.Inputs) > 1
}

// QuoteShell joins arguments to a line that a shell takes apart again. What does not
// draw itself is written as an escape sequence, which bash, zsh and ksh know.
func QuoteShell(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		switch {
		case strings.ContainsFunc(arg, hidden) || clean(arg) != arg:
			quoted[i] = "$'" + strings.ReplaceAll(clean(strings.ReplaceAll(arg, `\`, `\\`)), "'", `\'`) + "'"
		case arg == "" || strings.ContainsFunc(arg, special):
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		default:
			quoted[i] = arg
		}
	}
	return strings.Join(quoted, " ")
}

// special tells whether r may mean something to a shell.
func special(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > '~' || strings.ContainsRune("_-+=:,./@%", r)
	return !plain
}
