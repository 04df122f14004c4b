package ranks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// leaveOutRepetitions returns the captures without those whose events others have
// too: copies, cut-off copies, and the parts of a merged file beside the files that
// it was made of. Drawn twice, a rank would say that there are two, and collectives
// that have two ranks of one number would join nothing.
func leaveOutRepetitions(captures []*Capture, diags *trace.Diags) []*Capture {
	kept := leaveOutCopies(captures, diags)
	// Files that are whole before parts, which are sums of whole files.
	kept = leaveOutContained(kept, false, diags)
	all := peersOf(kept)
	kept = slices.DeleteFunc(kept, func(c *Capture) bool { return isSum(c, all.of(c), diags) })
	return inOrder(captures, leaveOutContained(kept, true, diags))
}

// inOrder returns the captures that are kept, in their order.
func inOrder(captures, kept []*Capture) []*Capture {
	stay := order.Set(kept)
	return slices.DeleteFunc(captures, func(c *Capture) bool { return !stay[c] })
}

// processOfMachine tells captures of an input that has those of a whole machine apart;
// it is 0 for all others.
func (c *Capture) processOfMachine() int64 {
	if c.IsOfMachine() {
		return c.File.Meta.PID
	}
	return 0
}

// peers are captures by the process of an export that they are, 0 for all others: only
// those of one number may have the same events, and only those of one rank, if all tell theirs. A
// node has more processes, and a job more ranks, than anybody could compare in pairs.
type peers map[int64]*peerList

// A peerList is captures of one number.
type peerList struct {
	all     []*Capture
	byRank  map[int32][]*Capture // by the number of the rank in its job
	unknown bool                 // some do not tell theirs
}

func (p peers) add(c *Capture) {
	l := order.Memo(p, c.processOfMachine(), func() *peerList { return &peerList{byRank: map[int32][]*Capture{}} })
	rank := c.known.Rank.Global
	l.all, l.byRank[rank] = append(l.all, c), append(l.byRank[rank], c)
	l.unknown = l.unknown || rank < 0
}

// of returns those that c may have events of, in the order in which they were added.
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

// leaveOutCopies returns the captures without those whose events are the same as
// another's, the ones that tell most first.
func leaveOutCopies(captures []*Capture, diags *trace.Diags) []*Capture {
	// What tells more about its rank is kept; of files that tell as much, the one that is called as others are.
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

// mayRepeat reports whether nothing but events can tell c and o apart.
func (c *Capture) mayRepeat(o *Capture) bool {
	return c.agrees(o) && c.File.Meta.Origin == o.File.Meta.Origin && c.overlaps(o)
}

// agrees reports whether nothing that is known of rank and host differs.
func (c *Capture) agrees(o *Capture) bool {
	if c.known.Rank.Contradicts(o.known.Rank) {
		return false
	}
	x, _, _ := strings.Cut(c.known.Host, ".")
	y, _, _ := strings.Cut(o.known.Host, ".")
	return x == "" || y == "" || strings.EqualFold(x, y)
}

// learn takes over what only c tells about rank and host: the header of a merged
// file is lost, a copy may have a label.
func (o *Capture) learn(c *Capture) {
	o.known.Rank = o.known.Rank.Fill(c.known.Rank)
	o.known.Host, o.known.Name.Run = cmp.Or(o.known.Host, c.known.Host), cmp.Or(o.known.Name.Run, c.known.Name.Run)
	o.known.NotRank = o.known.NotRank && c.known.NotRank
}

// isSum reports whether a capture is several others put together, which is what SGLang's merger
// makes of captures by stage. It adds a message to diags if so.
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

// leaveOutContained leaves out captures whose events a longer one of the same
// process has too: copies that were cut off, and with parts, files of one stage
// beside the part of a merged file whose other stage is missing.
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
