// Package pick chooses which traces of dumps to read for a selection of requests: a second pass over large dumps reads only these.
package pick

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// Wanted chooses the traces to read from dumps for a [request.Selection]: all traces of each request that
// it may select, and those of others that selecting requires:
//
//   - one trace with each thread, since the names of ranks and hosts depend on which there are,
//     and one with each stage, since reports say what servers trace;
//   - the first and the last trace, since times are relative to them;
//   - requests that share an ID with a chosen one, which is flagged for that;
//   - a sample of all traces, by which the clocks of several hosts are related.
//
// For the slowest requests, Choose first takes those with the longest spans, twice the
// wanted number; [Wanted.Suffices] says whether another one may be slower.
type Wanted struct {
	// ByID chooses by ID; nil chooses all.
	ByID request.IDTest
	// Window returns when requests are wanted, given the bounds of the dumps; 0 is no bound.
	Window func(first, last trace.Time) (from, to trace.Time, err error)
	// AsRecorded says that the window is on the clocks of the hosts.
	AsRecorded bool
	// Slowest is the number of slowest requests that are wanted; 0 is all. It cannot be combined with ByID
	// or a window.
	Slowest int

	margin  trace.Time // by how much clocks may differ
	sampled bool       // the clocks of hosts are related by a sample
	least   int64      // ns: requests that took less are not among the slowest
	longest int64      // ns: the longest request that was not chosen
}

// Attributes of interest, by index in [spantable.Prescan.Keys].
const (
	pickRID = iota
	pickFullID
	pickGatewayID
	pickRoom
	pickHost
	pickE2E
	pickName // name of a span
)

const (
	// firstMargin is by how much the clocks of hosts may differ at first, in ns. If they turn out to differ
	// more, the dumps are read again.
	firstMargin = 2_000_000_000
	// The clocks of hosts are related by sampleRuns runs of up to sampleRun consecutive traces each, or 1
	// in sampleShare if that is less.
	sampleRuns, sampleRun, sampleShare = 32, 64, 16
	// maxAlike limits how many traces are read because they share an ID or a room: a few are enough to see
	// that it is shared.
	maxAlike = 16
	// maxNames limits how many traces are read for their span names.
	maxNames = 1024
)

// Prescan returns what has to be collected from spans for choosing.
func (p *Wanted) Prescan() spantable.Prescan {
	return spantable.Prescan{
		Plain: func(name []byte) bool { return assembly.IsStage(string(name)) },
		Keys:  []string{"rid", "gen_ai.request.id", "request_id", "bootstrap_room", "host_id", "gen_ai.latency.e2e"},
		Mark: func(key int, value []byte) (mark uint64, wanted bool) {
			text := string(value)
			switch {
			case key == pickHost:
			case key == pickE2E:
				return p.tookAtMost(text), false
			case key == pickName:
				if assembly.OfRequest(text) {
					return 0, false // each has its own
				}
			case key == pickRoom || key == pickRID && strings.HasPrefix(text, "0x"): // senders have rooms as rids
				if text = request.RoomText(text); text == "" {
					return 0, false
				}
				wanted = p.ByID != nil && (p.ByID(request.RoomID, text) || key == pickRID && p.ByID(request.RequestID, string(value)))
			default:
				wanted = p.ByID != nil && p.ByID(request.RequestID, text)
			}
			return order.MixText(text), wanted
		},
	}
}

// tookAtMost returns how long a request took according to its server, in ns, if that matters: it counts if
// the span of the request is missing.
func (p *Wanted) tookAtMost(seconds string) uint64 {
	s, err := strconv.ParseFloat(seconds, 64)
	if p.Slowest == 0 || err != nil || !(s > 0) {
		return 0
	}
	return uint64(min(math.Ceil(s*1e9), 1<<62))
}

// A picking is a choice in progress. Properties of a group of joined traces are stored at the group's first
// trace.
type picking struct {
	*Wanted
	*spantable.Outline
	groups order.Union
	keep   []bool
}

// Choose chooses traces from an outline; nil means everything, because little could be left out, or because
// nothing matches: the caller then reports what there is.
func (p *Wanted) Choose(o *spantable.Outline) (*spantable.Selected, error) {
	if len(o.Traces) == 0 {
		return nil, nil
	}
	c := &picking{Wanted: p, Outline: o, groups: order.NewUnion(len(o.Traces)), keep: make([]bool, len(o.Traces))}
	first, last := c.ends()
	from, to, err := p.Window(o.Traces[first].First, o.Traces[last].Last)
	if err != nil {
		return nil, err
	}
	if !p.AsRecorded && (p.sampled || c.severalClocks()) {
		p.sampled, p.margin = true, max(p.margin, firstMargin)
	}
	c.joinRooms()
	c.pick(from, to)
	if c.Slowest > 0 {
		c.pickSlowest()
	}
	if !slices.Contains(c.keep, true) {
		return nil, nil
	}
	c.keep[c.groups.Find(first)], c.keep[c.groups.Find(last)] = true, true
	c.addNames()
	c.addSample()
	c.addAlike()
	kept := 0
	for t := range c.keep {
		c.keep[t] = c.keep[c.groups.Find(t)]
		if c.keep[t] {
			kept++
		}
	}
	const worthwhile = 3 // quarters
	if 4*kept > worthwhile*len(c.keep) {
		return nil, nil
	}
	return o.Choose(c.keep), nil
}

// ends returns the first and the last trace.
func (c *picking) ends() (first, last int) {
	for t := range c.Traces {
		if c.Traces[t].First < c.Traces[first].First {
			first = t
		}
		if c.Traces[t].Last > c.Traces[last].Last {
			last = t
		}
	}
	return first, last
}

// alike calls f with the traces that share a value, in order of first appearance.
func alike(marks []spantable.Mark, f func(traces []uint32)) {
	marks = slices.Clone(marks)
	slices.SortFunc(marks, func(x, y spantable.Mark) int {
		return cmp.Or(cmp.Compare(x.Value, y.Value), cmp.Compare(x.Trace, y.Trace))
	})
	var traces []uint32
	for i, m := range marks {
		if i > 0 && marks[i-1].Value != m.Value {
			f(traces)
			traces = traces[:0]
		}
		if len(traces) < maxAlike && !slices.Contains(traces, m.Trace) {
			traces = append(traces, m.Trace)
		}
	}
	if len(traces) > 0 {
		f(traces)
	}
}

// joinRooms joins the traces that share a room. A sender's rid is its room.
func (c *picking) joinRooms() {
	marks, rooms := slices.Clone(c.Marks[pickRoom]), map[uint64]bool{}
	for _, m := range marks {
		rooms[m.Value] = true
	}
	for _, m := range c.Marks[pickRID] {
		if rooms[m.Value] {
			marks = append(marks, m)
		}
	}
	alike(marks, func(traces []uint32) {
		for _, t := range traces[1:] {
			c.groups.Join(int(traces[0]), int(t))
		}
	})
}

// pick keeps the requests that ByID chooses and that overlap the window, widened by the margin.
func (c *picking) pick(from, to trace.Time) {
	all := slices.Clone(c.Traces)
	for t := range all {
		g := &all[c.groups.Find(t)]
		wanted := all[t].Wanted || c.ByID != nil && c.ByID(request.TraceID, request.TraceText(all[t].ID))
		g.First, g.Last, g.Wanted = min(g.First, all[t].First), max(g.Last, all[t].Last), g.Wanted || wanted
	}
	for t, g := range all {
		overlaps := (from == 0 || g.Last >= from-c.margin) && (to == 0 || g.First <= to+c.margin)
		c.keep[t] = c.groups.Find(t) == t && overlaps && (c.ByID == nil || g.Wanted)
	}
}

// pickSlowest keeps the requests that may be among the slowest: a request took as long as one of its spans,
// or as its server says.
func (c *picking) pickSlowest() {
	most := make([]int64, len(c.Traces)) // longest possible duration of requests, by their first trace
	for t := range c.Traces {
		g := c.groups.Find(t)
		most[g] = max(most[g], c.Traces[t].Longest)
	}
	for _, m := range c.Marks[pickE2E] {
		g := c.groups.Find(int(m.Trace))
		most[g] = max(most[g], int64(m.Value))
	}
	if c.least == 0 {
		sorted := slices.Sorted(slices.Values(most))
		c.least = max(1, sorted[max(0, len(sorted)-2*c.Slowest)])
	}
	c.longest = 0
	for t := range c.keep {
		if c.keep[t] && most[t] < c.least {
			c.keep[t], c.longest = false, max(c.longest, most[t])
		}
	}
}

// addNames keeps one trace with each thread, service, and stage.
func (c *picking) addNames() {
	n := 0
	alike(c.Marks[pickName], func(traces []uint32) {
		if n++; n <= maxNames {
			c.keep[c.groups.Find(int(traces[0]))] = true
		}
	})
}

// addSample keeps a sample if there are several clocks: runs of consecutive requests, so that most pieces
// of the files need not be read.
func (c *picking) addSample() {
	if !c.sampled {
		return
	}
	every := max(1, len(c.Traces)/sampleRuns)
	run := min(sampleRun, max(1, every/sampleShare))
	for t := range c.Traces {
		if c.groups.Find(t) == t && t%every < run {
			c.keep[t] = true
		}
	}
}

// severalClocks reports whether there seem to be several clocks: of hosts, or of a gateway.
func (c *picking) severalClocks() bool {
	hosts := 0
	alike(c.Marks[pickHost], func([]uint32) { hosts++ })
	return hosts > 1 || len(c.Marks[pickGatewayID]) > 0
}

// addAlike keeps requests that share an ID with one that is kept.
func (c *picking) addAlike() {
	alike(c.Marks[pickRID], func(traces []uint32) {
		if slices.ContainsFunc(traces, func(t uint32) bool { return c.keep[c.groups.Find(int(t))] }) {
			for _, t := range traces {
				c.keep[c.groups.Find(int(t))] = true
			}
		}
	})
}

// Suffices reports whether the requests built from the chosen traces are enough to select from. If not,
// calling Choose again takes more.
func (p *Wanted) Suffices(set *request.Set) bool {
	if p.Slowest > 0 {
		if took := set.SlowestE2E(p.Slowest); took <= p.longest {
			p.least = max(took, 1)
			return false
		}
	}
	if p.AsRecorded {
		return true
	}
	clocks := set.HostClocks()
	if clocks.Several() && !p.sampled {
		p.sampled = true
		return false
	}
	if most := clocks.Most(); most > p.margin {
		p.margin = 2 * most
		return false
	}
	return true
}
