package page

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// A Source is what a report is of, as arguments of 'sgtrace report'.
type Source struct {
	Select []string // flags that choose a part: "--from", "+30s"
	Inputs []string
}

// Command is the command line of a report about the source, to be pasted into a
// shell.
func (s Source) Command(flags ...string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", "report"}, flags, s.Select, s.Inputs))
}
