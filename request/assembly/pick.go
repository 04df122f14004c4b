package assembly

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A Pick chooses the traces that are read of dumps for a [request.Selection]: those of the
// requests that it may select, all traces of each, and those of others that tell what
// selecting needs to know of the whole:
//
//   - one trace with each thread, since names of ranks and hosts depend on which there are,
//     and with each stage, since reports tell what servers trace;
//   - the first and the last trace, from which times are counted;
//   - requests that share an ID with a chosen one, which is flagged for that;
//   - a sample of all, by which the clocks of several hosts are related.
//
// Of the slowest requests, Choose takes at first those with the longest spans, and twice as
// many as are wanted; [Pick.Suffices] tells whether another one may be slower.
type Pick struct {
	// ByID chooses by IDs; nil takes all.
	ByID request.IDTest
	// Window returns when requests are wanted, given when the dumps begin and end; 0 is open.
	Window func(first, last trace.Time) (from, to trace.Time, err error)
	// AsRecorded tells that the window is on the clocks of the hosts.
	AsRecorded bool
	// Slowest is how many requests are wanted of those that took longest; 0 is all. It goes
	// with neither ByID nor a window.
	Slowest int

	margin  trace.Time // by how much clocks may differ
	sampled bool       // the clocks of hosts are related by a sample
	least   int64      // ns: requests that cannot have taken as long are not among the slowest
	longest int64      // ns: none that was not chosen took longer
}

// What attributes tell of a trace, by number in [spantable.Prescan.Keys].
const (
	pickRID = iota
	pickFullID
	pickGatewayID
	pickRoom
	pickHost
	pickE2E
	pickName // of a span
)

const (
	// firstMargin is by how much the clocks of hosts may differ at first, in ns. If they
	// turn out to differ more, dumps are read once more.
	firstMargin = 2_000_000_000
	// Clocks of hosts are related by sampleRuns runs of up to sampleRun traces that follow
	// each other, or one in sampleShare if that is less.
	sampleRuns, sampleRun, sampleShare = 32, 64, 16
	// maxAlike bounds how many traces are read because they share an ID or a room: that of
	// a few suffices to see that it is shared.
	maxAlike = 16
	// maxNames bounds how many traces are read for the names of their spans.
	maxNames = 1024
)

// Prescan returns what has to be known of spans to choose.
func (p *Pick) Prescan() spantable.Prescan {
	return spantable.Prescan{
		Plain: func(name []byte) bool { return stageByName[string(name)] != nil },
		Keys:  []string{"rid", "gen_ai.request.id", "request_id", "bootstrap_room", "host_id", "gen_ai.latency.e2e"},
		Mark: func(key int, value []byte) (mark uint64, wanted bool) {
			text := string(value)
			switch {
			case key == pickHost:
			case key == pickE2E:
				return p.tookAtMost(text), false
			case key == pickName:
				if class := classify(text); class == requestName || class == envelopeName {
					return 0, false // each has its own
				}
			case key == pickRoom || key == pickRID && strings.HasPrefix(text, "0x"): // as senders are called
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

// tookAtMost returns what a server says that a request took, in ns, if that matters: it counts
// where the span of the request is missing.
func (p *Pick) tookAtMost(seconds string) uint64 {
	s, err := strconv.ParseFloat(seconds, 64)
	if p.Slowest == 0 || err != nil || !(s > 0) {
		return 0
	}
	return uint64(min(math.Ceil(s*1e9), 1<<62))
}

// A picking is a choice that is being made. What is true of a group of traces that are
// joined is noted at its first.
type picking struct {
	*Pick
	*spantable.Outline
	groups groups
	keep   []bool
}

// Choose chooses from an outline; nil is everything, because little could be left out or
// because nothing is asked for that is there: then who asks is told what there is.
func (p *Pick) Choose(o *spantable.Outline) (*spantable.Selected, error) {
	if len(o.Traces) == 0 {
		return nil, nil
	}
	c := &picking{Pick: p, Outline: o, groups: newGroups(len(o.Traces)), keep: make([]bool, len(o.Traces))}
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
	c.keep[c.groups.find(first)], c.keep[c.groups.find(last)] = true, true
	c.addNames()
	c.addSample()
	c.addAlike()
	kept := 0
	for t := range c.keep {
		c.keep[t] = c.keep[c.groups.find(t)]
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

// alike calls f with the traces that share a value, in the order in which they were seen first.
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

// joinRooms joins the traces that share a room. Senders are called by theirs.
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
			c.groups.union(int(traces[0]), int(t))
		}
	})
}

// pick keeps what is asked for.
func (c *picking) pick(from, to trace.Time) {
	all := slices.Clone(c.Traces)
	for t := range all {
		g := &all[c.groups.find(t)]
		wanted := all[t].Wanted || c.ByID != nil && c.ByID(request.TraceID, request.TraceText(all[t].ID))
		g.First, g.Last, g.Wanted = min(g.First, all[t].First), max(g.Last, all[t].Last), g.Wanted || wanted
	}
	for t, g := range all {
		overlaps := (from == 0 || g.Last >= from-c.margin) && (to == 0 || g.First <= to+c.margin)
		c.keep[t] = c.groups.find(t) == t && overlaps && (c.ByID == nil || g.Wanted)
	}
}

// pickSlowest keeps the requests that may be among the slowest: a request took as long as one
// of its spans, or as its server says.
func (c *picking) pickSlowest() {
	most := make([]int64, len(c.Traces)) // that requests may have taken, at their first traces
	for t := range c.Traces {
		g := c.groups.find(t)
		most[g] = max(most[g], c.Traces[t].Longest)
	}
	for _, m := range c.Marks[pickE2E] {
		g := c.groups.find(int(m.Trace))
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

// addNames keeps a trace with each thread, service, and stage.
func (c *picking) addNames() {
	n := 0
	alike(c.Marks[pickName], func(traces []uint32) {
		if n++; n <= maxNames {
			c.keep[c.groups.find(int(traces[0]))] = true
		}
	})
}

// addSample keeps a sample if there are several clocks: runs of requests that follow each
// other, so that most pieces of the files have none of it.
func (c *picking) addSample() {
	if !c.sampled {
		return
	}
	every := max(1, len(c.Traces)/sampleRuns)
	run := min(sampleRun, max(1, every/sampleShare))
	for t := range c.Traces {
		if c.groups.find(t) == t && t%every < run {
			c.keep[t] = true
		}
	}
}

// severalClocks reports whether there seem to be several: of hosts, or of a gateway.
func (c *picking) severalClocks() bool {
	hosts := 0
	alike(c.Marks[pickHost], func([]uint32) { hosts++ })
	return hosts > 1 || len(c.Marks[pickGatewayID]) > 0
}

// addAlike keeps requests that share an ID with one that is kept.
func (c *picking) addAlike() {
	alike(c.Marks[pickRID], func(traces []uint32) {
		if slices.ContainsFunc(traces, func(t uint32) bool { return c.keep[c.groups.find(int(t))] }) {
			for _, t := range traces {
				c.keep[c.groups.find(int(t))] = true
			}
		}
	})
}

// Suffices reports whether what was chosen is enough to select from what was made of it.
// If not, another Choose takes more.
func (p *Pick) Suffices(set *request.Set) bool {
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
