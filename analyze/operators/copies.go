package operators

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A CopyRow is the copies of one operation between two kinds of memory that one operator launched
// itself, or that have none, from one Python function.
type CopyRow struct {
	Row       profilewalk.Row // Name is the operator, or why there is none
	Copied    profilewalk.Copied
	Kind      profile.CopyKind
	Operation string
	Function  string // the innermost one that belongs to no library; "" is unknown
	Share     float64
}

// A copyKey identifies a CopyRow.
type copyKey struct {
	rank                          int32
	operator, operation, function trace.Sym // 0 is unknown
	why                           outside   // why there is no operator
	kind                          profile.CopyKind
}

func (k copyKey) compare(o copyKey) int {
	return cmp.Or(cmp.Compare(k.rank, o.rank), cmp.Compare(k.operator, o.operator), cmp.Compare(k.operation, o.operation),
		cmp.Compare(k.function, o.function), cmp.Compare(k.why, o.why), cmp.Compare(k.kind.From, o.kind.From), cmp.Compare(k.kind.To, o.kind.To))
}

// A copyCall is the call that launched a copy.
type copyCall struct {
	at trace.Time
	threadID
	function trace.Sym  // innermost one around it that belongs to no library; 0 if there is none so far
	from     trace.Time // when that function began
}

// copyCalls are the calls that launched the copies of a stream.
type copyCalls struct {
	byRank []order.Paged[int32] // by rank and correlation: index of list, plus one
	list   []copyCall
}

// readCopyCalls numbers the calls that launched copies. Their times and threads are not known yet.
func readCopyCalls(set *profile.Set, s profile.Stream) *copyCalls {
	calls := &copyCalls{byRank: make([]order.Paged[int32], len(set.Ranks))}
	for c := range s.Copies {
		if c.Correlation == 0 {
			continue
		}
		if n := calls.byRank[c.Rank].At(c.Correlation); *n == 0 {
			calls.list = append(calls.list, copyCall{})
			*n = int32(len(calls.list))
		}
	}
	return calls
}

// callOf returns the call of a correlation; nil if it launched no copy.
func (c *copyCalls) callOf(rank int32, correlation int64) *copyCall {
	if correlation == 0 {
		return nil
	}
	n := c.byRank[rank].Find(correlation)
	if n == nil || *n == 0 {
		return nil
	}
	return &c.list[*n-1]
}

// called notes a call.
func (c *copyCalls) called(call *profile.Call) {
	if at := c.callOf(call.Rank, call.Correlation); at != nil {
		at.at, at.threadID = call.Start, threadID{call.Rank, call.PID, call.TID}
	}
}

// findFunctions finds the Python functions around all calls. It takes frames as they come, and keeps
// none.
func (c *copyCalls) findFunctions(s profile.Stream, syms *trace.Symbols) {
	byThread := map[threadID][]*copyCall{}
	for i := range c.list {
		call := &c.list[i]
		byThread[call.threadID] = append(byThread[call.threadID], call)
	}
	for _, calls := range byThread {
		slices.SortFunc(calls, func(a, b *copyCall) int { return cmp.Compare(a.at, b.at) })
	}
	names := host.NewNames(syms)
	for f := range s.Frames {
		if f.Kind != profile.PythonFrame {
			continue
		}
		calls := byThread[threadID{f.Rank, f.PID, f.TID}]
		first, _ := slices.BinarySearchFunc(calls, f.Start, func(call *copyCall, t trace.Time) int { return cmp.Compare(call.at, t) })
		for _, call := range calls[first:] {
			if call.at >= f.End || !names.Of(host.PythonFrame, f.Name).Own {
				break
			}
			if call.function == 0 || f.Start >= call.from {
				call.function, call.from = names.Of(host.PythonFrame, f.Name).Name, f.Start
			}
		}
	}
}

// sumCopies sums up the copies of a stream by what launched them.
func (c *collector) sumCopies(s profile.Stream) {
	c.copies = map[copyKey]*profilewalk.Copied{}
	for copied := range s.Copies {
		if !c.opt.Keeps(&copied.Event) {
			continue
		}
		key := copyKey{rank: copied.Rank, operation: copied.Name, kind: copied.Kind, why: noCall}
		if p := c.placeOf(&copied.Event); p != nil {
			key.operator, key.why = c.operatorAt(p)
		}
		if name, ok := c.capturedOperator(&copied.Event); ok {
			key.operator, key.why = name, noOperator
		}
		if c.calls != nil {
			if call := c.calls.callOf(copied.Rank, copied.Correlation); call != nil {
				key.function = call.function
			}
		}
		order.Memo(c.copies, key, func() *profilewalk.Copied { return &profilewalk.Copied{} }).Add(copied)
	}
}

// operatorAt returns the operator of a place, or 0 and why there is none.
func (c *collector) operatorAt(p *place) (name trace.Sym, why outside) {
	switch {
	case p.frame != none:
		return c.classes[c.list[p.thread-1].frames[p.frame].class].name, noOperator
	case p.graph:
		return 0, inGraph
	}
	return 0, noOperator
}

// copyRows makes the rows of copies.
func (o *Operators) copyRows(set *profile.Set, streams []*collector) {
	var all []profilewalk.Member[copyKey, profilewalk.Copied]
	for _, c := range streams {
		for key, sum := range c.copies {
			m := profilewalk.Member[copyKey, profilewalk.Copied]{Key: key, Rank: key.rank, Part: sum}
			if !o.ByRank {
				m.Key.rank = profilewalk.NoRank
			}
			all = append(all, m)
		}
	}
	for _, p := range profilewalk.Pools(all, copyKey.compare) {
		key := &p.Key
		row := CopyRow{Row: profilewalk.NewRow(set, profilewalk.Key{Rank: key.rank, Name: key.operator}, p.Ranks), Kind: key.kind,
			Operation: set.Syms.Name(key.operation), Function: nameOf(set, key.function)}
		if key.operator == 0 {
			row.Row.Name = outsideNames[key.why]
		}
		for _, part := range p.Parts {
			row.Copied.Join(part)
		}
		row.Share = distribution.Fraction(row.Copied.Time, o.gpu)
		o.Copies = append(o.Copies, row)
	}
	slices.SortFunc(o.Copies, func(a, b CopyRow) int {
		return cmp.Or(a.Row.Compare(&b.Row, a.Copied.Time, b.Copied.Time), strings.Compare(a.Operation, b.Operation), strings.Compare(a.Kind.String(), b.Kind.String()),
			strings.Compare(a.Function, b.Function))
	})
}
