package overview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An Event is what happened at some time, for the timeline of a post-mortem.
type Event struct {
	At   trace.Time
	Text string
}

// Events are what happened, in order: the bounds of what was read, changes, the beginnings
// and ends of findings, what happened to servers, and requests that failed.
func (o *Overview) Events() []Event {
	var list []Event
	add := func(at trace.Time, format string, args ...any) {
		if at != 0 {
			list = append(list, Event{at, fmt.Sprintf(format, args...)})
		}
	}
	if o.Requests != nil && len(o.Requests.Requests) > 0 {
		add(o.From, "the first request starts")
		add(o.To, "the last request ends")
		o.addFailures(add)
	}
	if o.GPUs != nil {
		from, to := o.GPUs.Bounds()
		add(from, "the first kernel or copy that profilers recorded")
		add(to, "the last kernel or copy that profilers recorded")
	}
	told := map[trace.Time]bool{} // changes are findings, too
	for i := range o.Findings {
		f := &o.Findings[i]
		add(f.Since, "finding %d: %s", i+1, f.Text)
		add(f.Until, "finding %d is over", i+1)
		told[f.Since] = true
	}
	if o.Lives != nil {
		for i := range o.Lives.Events {
			if e := &o.Lives.Events[i]; !told[e.At] {
				add(e.At, "%s", e.Sentence())
			}
		}
	}
	if o.Changes != nil {
		for i := range o.Changes.List {
			if c := &o.Changes.List[i]; !told[c.Time] {
				add(c.Time, "%s", c.Sentence())
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return list
}

// addFailures tells when requests failed: one by one, or from when to when.
func (o *Overview) addFailures(add func(trace.Time, string, ...any)) {
	const few = 3
	var failed []*request.Request
	for i := range o.Requests.Requests {
		if r := &o.Requests.Requests[i]; r.Status == request.Failed {
			failed = append(failed, r)
		}
	}
	slices.SortStableFunc(failed, func(a, b *request.Request) int { return cmp.Compare(a.End, b.End) })
	if len(failed) > few {
		add(failed[0].End, "the first of %s that failed: %s", words.Counted(len(failed), "request"), o.Requests.Text(failed[0].RID))
		add(failed[len(failed)-1].End, "the last of them: %s", o.Requests.Text(failed[len(failed)-1].RID))
		return
	}
	for _, r := range failed {
		add(r.End, "request %s fails", o.Requests.Text(r.RID))
	}
}
