package ranks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// leaveOutRepetitions returns the captures without those whose events other captures also have: copies,
// cut-off copies, and parts of a merged file beside the files it was merged from. Otherwise, one rank would
// be drawn as two, and their collectives would be unmatched because of the repeated rank.
func leaveOutRepetitions(captures []*Capture, diags *trace.Diags) []*Capture {
	kept := leaveOutCopies(captures, diags)
	// Whole files first, then parts, which are sums of whole files.
	kept = leaveOutContained(kept, false, diags)
	all := peersOf(kept)
	kept = slices.DeleteFunc(kept, func(c *Capture) bool { return isSum(c, all.of(c), diags) })
	return inOrder(captures, leaveOutContained(kept, true, diags))
}

// inOrder returns the captures that are in kept, in their original order.
func inOrder(captures, kept []*Capture) []*Capture {
	stay := order.Set(kept)
	return slices.DeleteFunc(captures, func(c *Capture) bool { return !stay[c] })
}

// processOfMachine returns the pid of a capture from an input with all processes of a machine, and 0 for
// others.
func (c *Capture) processOfMachine() int64 {
	if c.IsOfMachine() {
		return c.File.Meta.PID
	}
	return 0
}

// peers groups captures by processOfMachine. Only captures of one group may have the same events, and, if
// all ranks are known, only those of the same rank: a node has too many processes, and a job too many
// ranks, to compare all pairs.
type peers map[int64]*peerList

// A peerList is a group of captures.
type peerList struct {
	all     []*Capture
	byRank  map[int32][]*Capture // by global rank
	unknown bool                 // some ranks are unknown
}

func (p peers) add(c *Capture) {
	l := order.Memo(p, c.processOfMachine(), func() *peerList { return &peerList{byRank: map[int32][]*Capture{}} })
	rank := c.known.Rank.Global
	l.all, l.byRank[rank] = append(l.all, c), append(l.byRank[rank], c)
	l.unknown = l.unknown || rank < 0
}

// of returns the captures that may share events with c, in the order in which they were added.
func (p peers) of(c *Capture) []*Capture {
	l := p[c.processOfMachine()]
	switch {
	case l == nil:
		return nil
	case l.unknown || c.known.Rank.Global < 0:
		return l.all
	}
	return l.byRank[c.known.Rank.Global]
}

func peersOf(captures []*Capture) peers {
	p := peers{}
	for _, c := range captures {
		p.add(c)
	}
	return p
}

// leaveOutCopies returns the captures without those whose events are the same as another's; those with the
// most information come first.
func leaveOutCopies(captures []*Capture, diags *trace.Diags) []*Capture {
	// Keep the copy that says more about its rank; among equals, the one whose run is the most common.
	best, runs := slices.Clone(captures), map[string]int{}
	for _, c := range captures {
		runs[c.known.Name.Run]++
	}
	slices.SortStableFunc(best, func(a, b *Capture) int {
		return cmp.Or(order.Bool(a.Part != "", b.Part != ""), order.Bool(a.known.Host == "", b.known.Host == ""),
			cmp.Compare(b.known.Rank.Known(), a.known.Rank.Known()), cmp.Compare(runs[b.known.Name.Run], runs[a.known.Name.Run]), strings.Compare(a.File.Name, b.File.Name), strings.Compare(a.Part, b.Part))
	})
	var doubtful, kept []*Capture
	all, others := peersOf(best), peers{}
	for _, c := range best {
		if slices.ContainsFunc(all.of(c), func(o *Capture) bool { return o != c && c.mayRepeat(o) }) {
			doubtful = append(doubtful, c)
		}
	}
	parallel.Each(len(doubtful), func(i int) { doubtful[i].contents() })
	for _, c := range best {
		before := others.of(c)
		same := slices.IndexFunc(before, func(o *Capture) bool { return c.mayRepeat(o) && c.contents().equal(o.contents()) })
		if same < 0 {
			kept = append(kept, c)
			others.add(c)
			continue
		}
		before[same].learn(c)
		diags.Add(trace.CaptureRepeated.Of(c.File.Name, c.label(), "events", before[same].File.Name))
	}
	return kept
}

// mayRepeat reports whether only events can tell c and o apart.
func (c *Capture) mayRepeat(o *Capture) bool {
	return c.agrees(o) && c.File.Meta.Origin == o.File.Meta.Origin && c.overlaps(o)
}

// agrees reports whether the known ranks and hosts of c and o do not conflict.
func (c *Capture) agrees(o *Capture) bool {
	if c.known.Rank.Contradicts(o.known.Rank) {
		return false
	}
	x, _, _ := strings.Cut(c.known.Host, ".")
	y, _, _ := strings.Cut(o.known.Host, ".")
	return x == "" || y == "" || strings.EqualFold(x, y)
}

// learn adopts what only c knows about rank and host: a merged file has no header, and a copy may have a
// label.
func (o *Capture) learn(c *Capture) {
	o.known.Rank = o.known.Rank.Fill(c.known.Rank)
	o.known.Host, o.known.Name.Run = cmp.Or(o.known.Host, c.known.Host), cmp.Or(o.known.Name.Run, c.known.Name.Run)
	o.known.NotRank = o.known.NotRank && c.known.NotRank
}

// isSum reports whether a capture is the sum of several others, as SGLang's merger makes of captures by
// stage. It adds a message to diags if so.
func isSum(c *Capture, others []*Capture, diags *trace.Diags) bool {
	var sum contents
	var names []string
	for _, o := range others {
		switch {
		case o == c || !c.mayRepeat(o) || o.contents().first < c.contents().first || o.contents().last > c.contents().last:
		case len(names) == 0:
			sum, names = *o.contents(), []string{o.File.Name}
		default:
			sum.add(o.contents())
			names = append(names, o.File.Name)
		}
	}
	if len(names) < 2 || !sum.equal(c.contents()) {
		return false
	}
	slices.Sort(names)
	diags.Add(trace.CaptureRepeated.Of(c.File.Name, c.label(), "events", strings.Join(names, " and ")))
	return true
}

// leaveOutContained leaves out captures whose events are in a longer capture of the same process: copies
// that were cut off, and, with parts, files of one stage beside the part of a merged file that lacks the
// other stage.
func leaveOutContained(kept []*Capture, parts bool, diags *trace.Diags) []*Capture {
	gone, before := map[*Capture]bool{}, peers{}
	for _, c := range kept {
		for _, o := range before.of(c) {
			if gone[c] || gone[o] || !parts && (c.Part != "" || o.Part != "") || !c.agrees(o) {
				continue
			}
			short, long := c, o
			if o.contents().n < c.contents().n {
				short, long = o, c
			}
			if short.isOf(long) {
				gone[short] = true
				long.learn(short)
				diags.Add(trace.CaptureContained.Of(short.File.Name, short.label(), long.File.Name))
			}
		}
		before.add(c)
	}
	return slices.DeleteFunc(kept, func(c *Capture) bool { return gone[c] })
}
