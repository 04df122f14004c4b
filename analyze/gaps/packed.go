package gaps

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// packedGaps are the late gaps of a device with their parts, in order, packed into a dozen bytes each.
// There may be millions, and they are needed only while their rank is measured.
type packedGaps struct {
	chunks      [][]byte
	gaps, parts int
	last        trace.Time // end of the last gap
}

const (
	// gapChunk is the size of a chunk, unless one gap takes more.
	gapChunk = 1 << 15
	// The most bytes that a gap takes, and each of its parts.
	maxPackedGap, maxPackedPart = 5 * binary.MaxVarintLen64, 3 * binary.MaxVarintLen64
)

// add packs a gap and its parts. The fields parts and thread of the gap are ignored.
func (p *packedGaps) add(g *lateGap, parts []part) {
	p.chunks = withRoom(p.chunks, maxPackedGap+len(parts)*maxPackedPart)
	last := &p.chunks[len(p.chunks)-1]
	b := binary.AppendVarint(*last, int64(g.Gap.From-p.last))
	b = binary.AppendVarint(b, int64(g.Gap.To-g.Gap.From))
	b = binary.AppendVarint(b, int64(g.launch-g.Gap.From))
	b = binary.AppendVarint(b, g.launched)
	b = binary.AppendUvarint(b, uint64(len(parts)))
	from := g.Gap.From
	for _, x := range parts {
		b = binary.AppendVarint(b, int64(x.to-from))
		b = binary.AppendVarint(b, int64(x.by))
		b = binary.AppendUvarint(b, uint64(x.reason))
		from = x.to
	}
	*last = b
	p.gaps, p.parts, p.last = p.gaps+1, p.parts+len(parts), g.Gap.To
}

// withRoom returns chunks whose last one has room for most more bytes.
func withRoom(chunks [][]byte, most int) [][]byte {
	if n := len(chunks); n > 0 && cap(chunks[n-1])-len(chunks[n-1]) >= most {
		return chunks
	}
	return append(chunks, make([]byte, 0, max(gapChunk, most)))
}

// spans appends the times of the gaps. Each includes the moment of its end, when whatever ended it may
// have been launched.
func (p *packedGaps) spans(to spans) spans {
	r := gapReader{Packed: memory.Unpack(slices.Clone(p.chunks))}
	for r.More() {
		g, _ := r.next(nil)
		to = append(to, gpu.Gap{From: g.Gap.From, To: g.Gap.To + 1})
	}
	return to
}

// unpack returns the gaps and their parts, and frees the packed ones.
func (p *packedGaps) unpack() (late []lateGap, parts []part) {
	r := gapReader{Packed: memory.Unpack(p.chunks)}
	late, parts = make([]lateGap, 0, p.gaps), make([]part, 0, p.parts)
	for r.More() {
		var g lateGap
		g, parts = r.next(parts)
		late = append(late, g)
	}
	*p = packedGaps{}
	return late, parts
}

// A gapReader reads packed gaps.
type gapReader struct {
	memory.Packed
	last trace.Time
}

// next reads a gap, and appends its parts.
func (r *gapReader) next(parts []part) (lateGap, []part) {
	g := lateGap{parts: int32(len(parts)), thread: unknownThread}
	g.Gap.From = r.last + trace.Time(r.Signed())
	g.Gap.To = g.Gap.From + trace.Time(r.Signed())
	g.launch = g.Gap.From + trace.Time(r.Signed())
	g.launched = r.Signed()
	to := g.Gap.From
	for range r.Unsigned() {
		to += trace.Time(r.Signed())
		parts = append(parts, part{to, int32(r.Signed()), gpu.Reason(r.Unsigned())})
	}
	r.last = g.Gap.To
	return g, parts
}

// A Window is a time on a rank, on the clock of its host; 0 is open.
type Window struct {
	Rank     int32
	From, To trace.Time
}

// Moved returns the window on a clock that is ahead by that many ns.
func (w Window) Moved(ahead int64) Window {
	for _, t := range [...]*trace.Time{&w.From, &w.To} {
		if *t != 0 {
			*t += trace.Time(ahead)
		}
	}
	return w
}

// A Late is how long a rank's devices waited for the host in a window, and what the host did.
type Late struct {
	Time   int64  // ns
	Causes []Work // the longest time first
}

// A Work is a place in the code of a host, and how long devices waited while the host was there.
type Work struct {
	Where string // "" is unknown
	Time  int64  // ns
}

// A keptRank is the parts of the late gaps of a rank, packed, each with the number of its cause.
type keptRank struct {
	causes []cause
	chunks [][]byte
	last   trace.Time // start of the gap of the last part
}

func (k *keptRank) add(number int32, gap trace.Time, ns int64) {
	k.chunks = withRoom(k.chunks, 3*binary.MaxVarintLen64)
	last := &k.chunks[len(k.chunks)-1]
	b := binary.AppendUvarint(*last, uint64(number))
	b = binary.AppendVarint(b, int64(gap-k.last))
	*last = binary.AppendUvarint(b, uint64(ns))
	k.last = gap
}

// Late returns, for each window, how long devices waited for late launches, in gaps that began in it or
// reached into it, and where their hosts were. [Collector.Measure] must have been called with Keep.
func (c *Collector) Late(windows []Window) []Late {
	byRank := make([][]int, len(c.ranks)) // windows
	for i, w := range windows {
		byRank[w.Rank] = append(byRank[w.Rank], i)
	}
	sums := make([]map[string]int64, len(windows)) // by place; only the goroutine of its rank touches one
	for i := range sums {
		sums[i] = map[string]int64{}
	}
	parallel.Each(len(c.kept), func(rank int) {
		if len(byRank[rank]) == 0 {
			return
		}
		kept := &c.kept[rank]
		late, wheres := make([]bool, len(kept.causes)), make([]string, len(kept.causes)) // by number
		for i := range kept.causes {
			// A host that waits for others is not late.
			row := c.row(&kept.causes[i])
			if late[i] = row.Reason != gpu.Meeting && row.Reason != gpu.ProfilerStart; late[i] && row.Activity != host.OnDevice {
				wheres[i] = row.Where()
			}
		}
		r := memory.Unpack(slices.Clone(kept.chunks))
		for gap := trace.Time(0); r.More(); {
			number := r.Unsigned()
			gap += trace.Time(r.Signed())
			ns := int64(r.Unsigned())
			if !late[number] {
				continue
			}
			for _, i := range byRank[rank] {
				w, within := &windows[i], ns
				if w.From != 0 {
					within -= max(0, int64(w.From-gap))
				}
				if within > 0 && (w.To == 0 || gap < w.To) {
					sums[i][wheres[number]] = distribution.AddTimes(sums[i][wheres[number]], within)
				}
			}
		}
	})
	out := make([]Late, len(windows))
	for i, sum := range sums {
		out[i].Causes = listed(sum)
		for _, w := range out[i].Causes {
			out[i].Time = distribution.AddTimes(out[i].Time, w.Time)
		}
	}
	return out
}

// Busiest returns where hosts were, over all ranks, while devices waited for late launches, for the reasons for which of returns true.
func (g *Gaps) Busiest(of func(gpu.Reason) bool) []Work {
	sums := map[string]int64{}
	for i := range g.Causes {
		if c := &g.Causes[i]; c.Activity != host.OnDevice && c.Where() != "" && of(c.Reason) {
			sums[c.Where()] = distribution.AddTimes(sums[c.Where()], c.Time)
		}
	}
	return listed(sums)
}

// Sum adds up the times at the same places.
func Sum(list []Work) []Work {
	sums := map[string]int64{}
	for _, w := range list {
		sums[w.Where] = distribution.AddTimes(sums[w.Where], w.Time)
	}
	return listed(sums)
}

// listed returns sums as a list, the longest time first.
func listed(sums map[string]int64) (list []Work) {
	for where, ns := range sums {
		list = append(list, Work{where, ns})
	}
	slices.SortFunc(list, func(a, b Work) int { return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Where, b.Where)) })
	return list
}
