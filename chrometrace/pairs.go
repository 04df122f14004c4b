package chrometrace

import (
	"slices"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// An openSlice has begun and not ended yet.
type openSlice struct {
	slice *profile.Slice // nil if the filter leaves it out
	name  trace.Sym
	time  trace.Time
	at    int64
	doc   int
}

// spans puts pairs together. rows are those of the file, by those of the batch.
func (c *collector) spans(b *parse.Batch, rows []int32) {
	for i := range b.Open {
		s := &b.Open[i]
		row := rows[s.Row]
		stack := c.open[row]
		if !s.Ends {
			o := openSlice{name: s.Name, time: s.Time, at: s.At, doc: len(c.docs) - 1}
			if s.Event != profile.NoEvent {
				o.slice = &b.Events[s.Event]
				c.paired = true
			}
			c.open[row] = append(stack, o)
			continue
		}
		last := len(stack) - 1
		if last < 0 {
			c.Diags.Report(trace.TraceUnmatchedEnd, s.At, 1)
			continue
		}
		for j := last; s.Async && j >= 0; j-- { // slices of one id may overlap
			if stack[j].name == s.Name {
				last = j
				break
			}
		}
		o := stack[last]
		c.open[row] = slices.Delete(stack, last, last+1)
		c.end(o, s)
	}
}

// end ends a slice.
func (c *collector) end(o openSlice, s *parse.Span) {
	if o.slice == nil {
		return
	}
	dur := int64(s.Time - o.time)
	if dur < 0 {
		c.Diags.Report(trace.TraceNegativeDuration, s.At, 1)
		dur = 0
	}
	o.slice.Dur = dur
	if len(s.Args) > 0 {
		o.slice.Args = c.opt.Args.Put(s.Args.Extend(o.slice.Args))
	}
}

// endOpen ends the slices that are still open with the last event of their
// document: it is all that is known.
func (c *collector) endOpen() {
	for _, stack := range c.open {
		for _, o := range stack {
			c.Diags.Report(trace.TraceOpenSlice, o.at, 1)
			if o.slice != nil {
				o.slice.Dur = max(0, int64(c.docs[o.doc].last(o.time)-o.time))
			}
		}
	}
}
