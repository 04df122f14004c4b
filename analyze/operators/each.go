package operators

import (
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Visitor takes what operators of a stream did, one by one.
type Visitor struct {
	// Call takes a call of an operator, and how long its thread was in it and in no operator
	// within, in ns.
	Call func(rank int32, name trace.Sym, at trace.Time, self int64)
	// Work takes what a device did, with the operator that launched it itself, or the name of
	// the row of Operators.Names that has it.
	Work func(k *profile.Kernel, name trace.Sym)

	outside [numOutside]trace.Sym
}

// Each passes what operators did, several streams at once, each to a visitor of its own.
func Each(set *profile.Set, opt walk.Options, visitor func(stream int) Visitor) {
	walk.EachStream(set, func(i int, s profile.Stream) {
		v := visitor(i)
		for why, name := range outsideNames {
			v.outside[why] = set.Syms.Intern(name)
		}
		collect(set, s, &opt, pass{selected: selectOperators(set.Syms), visit: &v})
	})
}

// visitCalls passes the operators of a thread.
func (c *collector) visitCalls(t *thread) {
	within := make([]int64, len(t.frames)) // ns in operators directly within
	for i := range t.frames {
		if f := &t.frames[i]; f.around != none {
			within[f.around] += int64(min(f.end, t.frames[f.around].end) - f.start)
		}
	}
	for i := range t.frames {
		if f := &t.frames[i]; c.keeps(f) {
			class := c.classes[f.class]
			c.visit.Call(class.rank, class.name, f.start, int64(f.end-f.start)-within[i])
		}
	}
}
