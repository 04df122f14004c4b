package host

import (
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A sample is the stack of functions that a thread was interrupted in.
type sample struct {
	at    trace.Time
	stack stackID
}

// A stackID identifies a stack of functions: its set, in the upper half, and its number in that.
type stackID int64

// recordings are the sets of stacks that a profiler recorded as a whole, with a cache of what their
// functions are.
type recordings struct {
	syms  *trace.Symbols
	sets  []*profile.Stacks
	known []map[profile.StackFrame]function // by set; the caller in the key is 0
	// python reports that some are Python functions.
	python bool
}

// A function is the frame of a function. Name 0 means that it says nothing.
type function struct {
	name trace.Sym
	did  Activity
}

// id returns the stack of a sample.
func (r *recordings) id(x *profile.Sample) stackID {
	set := len(r.sets) - 1
	if set < 0 || r.sets[set] != x.Stacks {
		r.sets = append(r.sets, x.Stacks)
		r.known = append(r.known, map[profile.StackFrame]function{})
		set++
	}
	return stackID(set)<<32 | stackID(x.Stack)
}

func (r *recordings) function(set int, f profile.StackFrame) function {
	f.Caller = 0
	return order.Memo(r.known[set], f, func() function {
		look := FunctionOf(r.syms.Name(f.Function), r.syms.Name(f.Module))
		switch {
		case look.Name == "":
			return function{}
		case look.Python:
			r.python = true
			return function{r.syms.Intern(look.Name), InPython}
		}
		return function{r.syms.Intern(look.Name), InNative}
	})
}

// push returns the stack in which around is followed by the functions of a recorded stack.
func (c *collector) push(around int32, id stackID) int32 {
	set, stack := int(id>>32), profile.StackID(id&(1<<32-1))
	var inward []function
	for f := range c.recordings.sets[set].From(stack) {
		if fn := c.recordings.function(set, f); fn.name != 0 {
			inward = append(inward, fn)
		}
	}
	for i := len(inward) - 1; i >= 0 && c.depth[around] < maxDepth; i-- {
		around = c.enter(around, inward[i].name, inward[i].did)
	}
	return around
}

// readSamples reads the samples of threads, and the stacks of calls, which become frames around the
// calls.
func (c *collector) readSamples(s profile.Stream) {
	var period Periods
	for x := range s.Samples {
		c.seen.Samples = true
		period.Add(x)
		t := c.thread(&x.Event, x.TID)
		t.samples = append(t.samples, sample{x.Start, c.recordings.id(x)})
	}
	c.period = trace.Time(period.Period())
	for x := range s.Backtraces(nil) {
		c.seen.Backtraces = true
		f := FrameOf(StackFrame, &x.Event)
		f.Correlation = int64(c.recordings.id(x))
		c.thread(&x.Event, x.TID).frames.Add(f)
	}
}

// fill counts a time in which a thread is in the same frames, or in none. Where these say no more than
// a range, samples show what the thread ran: each until the next one, and for no longer than the
// period.
func (c *collector) fill(t *thread, at int32, in bool, from, to trace.Time) {
	if !in || c.nodes[at].did == InRange {
		for len(t.samples) > 0 && t.samples[0].at < to {
			s := t.samples[0]
			t.samples = t.samples[1:]
			if s.at < from {
				continue // it belongs to other frames
			}
			if in {
				c.spend(at, from, s.at)
			}
			from = min(max(s.at, s.at+c.period), to)
			if len(t.samples) > 0 {
				from = min(from, t.samples[0].at)
			}
			c.spend(c.push(at, s.stack), s.at, from)
		}
	}
	if in {
		c.spend(at, from, to)
	}
}
