package failed

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A repeated list has one finding for all the times that a server ended in the same way. Without it, a server in a
// crash loop would hide everything else.
type repeated []sameEnd

// A sameEnd is the ends of a server that have the same text.
type sameEnd struct {
	k           int    // index of the finding
	text        string // text of the first event without digits
	first, last *telemetry.Event
	more        int // number of further ends
}

// again adds an end to the finding of an earlier one if their texts are the same except for numbers, and reports
// whether it did.
func (r repeated) again(l *telemetry.Logged, out []finding.Finding, lead *telemetry.Event, f *finding.Finding) bool {
	text := unnumbered(lead.Text)
	for i := range r {
		x := &r[i]
		if lead.First == 0 || x.first.First == 0 || x.first.Server != lead.Server || x.first.Kind != lead.Kind || x.text != text {
			continue
		}
		o := &out[x.k]
		o.Evidence = append(o.Evidence, finding.Sentence("again: %s, in %s:%d", l.Sentence(lead), lead.File, lead.Line))
		if ready(l, lead.Server, x.last.First, lead.First) != nil {
			o.Cost = min(1, o.Cost+f.Cost)
		} else {
			o.Cost = max(o.Cost, f.Cost)
		}
		x.last, x.more = lead, x.more+1
		return true
	}
	return false
}

// counted adds to each finding how many more times its server ended that way.
func (r repeated) counted(out []finding.Finding) []finding.Finding {
	for _, x := range r {
		if f := &out[x.k]; x.more > 0 {
			f.Text += fmt.Sprintf(", and %s until %s", words.Counted(x.more, "more time"), words.At(max(x.last.First, x.last.Last), "2006-01-02 15:04:05"))
			f.Until = max(x.last.First, x.last.Last)
		}
	}
	return out
}

// ready returns the first event between two times that says that a server is ready, or nil.
func ready(l *telemetry.Logged, server int32, from, to trace.Time) *telemetry.Event {
	for i := range l.Events {
		if o := &l.Events[i]; o.Kind == series.Ready && o.Server == server && o.First > from && o.First < to {
			return o
		}
	}
	return nil
}

// unnumbered returns a text without digits.
func unnumbered(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c == '.' {
			return -1
		}
		return c
	}, text)
}
