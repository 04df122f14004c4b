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
	return s.Of("report", flags...)
}

// Of is the command line of any command about the source.
func (s Source) Of(command string, flags ...string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", command}, flags, s.Select, s.Inputs))
}

// requestCommand shows a request, and aroundCommand cuts its time out of the traces of
// all ranks.
func (s Source) requestCommand(rid string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", "request", rid}, s.Inputs))
}

func (s Source) aroundCommand(rid string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", "merge", "--around", rid, "-o", "around.pftrace"}, s.Inputs))
}
