package allocations

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// OutOfMemory is the subkind of findings about devices that ran out of memory.
const OutOfMemory = "out of memory"

// Steady is the subkind of findings about memory that grows to the end.
const Steady = "growth"

// Findings returns the devices that had no memory for an allocation.
func (m *Memory) Findings() (list []finding.Finding, check finding.Check) {
	check = finding.Check{What: "allocations that failed", Of: "recorded allocator", Needed: 1}
	for i := range m.Devices {
		d := &m.Devices[i]
		if d.Told {
			check.N++
		}
		if d.Failed > 0 {
			list = append(list, m.outOfMemory(d))
		}
	}
	for i := range list {
		list[i].Cost = 1 / float64(len(m.Devices))
	}
	if check.N == 0 {
		check.Reason = "snapshots say nothing about what came before them"
	}
	return list, check
}

// fewest is the least number of entries that show whether memory grows: blocks that are kept, and others that come and go meanwhile.
const fewest = 3 * fewestKept

// Leaks returns the devices whose memory grows to the end of the recording.
func (m *Memory) Leaks() (list []finding.Finding, check finding.Check) {
	check = finding.Check{What: "memory that grows", Of: "recorded allocator", Needed: 1}
	all := int64(0)
	for i := range m.Devices {
		d := &m.Devices[i]
		all += d.Allocated
		if d.Entries >= fewest {
			check.N++
		}
	}
	for i := range m.Growing {
		f := m.leak(&m.Growing[i])
		f.Cost = min(1, float64(m.Growing[i].Bytes)/float64(all))
		list = append(list, f)
	}
	if check.N == 0 {
		check.Reason = fmt.Sprintf("no device has %d entries, which growth takes at least", fewest)
	}
	return list, check
}

// leak returns the finding about a growth: which place keeps what, how fast, and what else could explain it.
func (m *Memory) leak(g *Growth) finding.Finding {
	name, top := fmt.Sprintf("device %d of %s", g.Number, g.Rank), &g.Sites[0]
	f := finding.Finding{Subkind: Steady + " " + name, At: place.Named(g.Rank), CostBasis: finding.MemoryInUse,
		Metric: finding.Metric{Name: "memory in use", Unit: table.Bytes, Before: float64(g.Before), After: float64(g.Use.Allocated)}}
	since := "to the end of the recording"
	switch {
	case g.Always:
		since = "throughout the recording"
	case g.From != 0:
		f.Since = g.From
		since = "since " + words.At(g.From, "15:04:05.000")
	}
	where := m.syms.Name(top.Where)
	f.Text = fmt.Sprintf("memory of %s grows %s: nothing frees %s of %s, %s", name, since, words.Counted(len(top.Kept), "block"), where, words.Size(top.Bytes))
	say := func(format string, args ...any) { f.Evidence = append(f.Evidence, finding.Sentence(format, args...)) }
	if left := g.untilTwice(); !math.IsNaN(left) {
		say("that is %s in %s; at this rate, PyTorch needs as much again as it has of the device, %s, within %s", words.Size(g.Bytes), words.Nearly(int64(g.Last-g.From)),
			words.Size(g.Use.Reserved), words.Nearly(int64(left)))
	}
	say("it is a leak unless something frees them later, or it stops: a cache that fills, weights that are loaded, and results that are collected look the same until then")
	say("all others come and go: they have %s at least in the first quarter of that time, and %s in the last", words.Size(g.Rest[0]), words.Size(g.Rest[1]))
	for i := range g.Sites[1:] {
		s := &g.Sites[1+i]
		say("nor were %s of %s, %s", words.Counted(len(s.Kept), "block"), m.syms.Name(s.Where), words.Size(s.Bytes))
	}
	for i := range m.Holders {
		if h := &m.Holders[i]; h.Rank == g.Rank && h.Number == g.Number && !h.Peak && h.Holding.Where == top.Where && !h.Holding.Before {
			say("of what is in use at the end, %s are of %s", words.Size(h.Holding.Bytes), where)
			last := &f.Evidence[len(f.Evidence)-1]
			*last = last.In("memory.stacks", finding.Row("rank", g.Rank, "at", "end", "where", where), "allocated", float64(h.Holding.Bytes))
		}
	}
	return f
}

// outOfMemory returns the finding about a device that ran out of memory. It leads with the
// last failure, after which most processes end.
func (m *Memory) outOfMemory(d *Device) finding.Finding {
	var last *Failure
	first := m.Failed[0].Time
	for i := range m.Failed {
		if x := &m.Failed[i]; x.Rank == d.Rank && x.Number == d.Number {
			if last == nil {
				first = x.Time
			}
			last = x
		}
	}
	name := fmt.Sprintf("device %d of %s", d.Number, d.Rank)
	f := finding.Finding{Subkind: OutOfMemory + " " + name, At: place.Named(d.Rank), Since: first, CostBasis: finding.Ranks,
		Metric: finding.Metric{Name: "bytes asked for", Unit: table.Bytes, Before: float64(last.Left), After: float64(last.Asked)}}
	f.Text = fmt.Sprintf("%s ran out of memory: %s were asked for, and it had %s left", name, words.Size(last.Asked), words.Size(last.Left))
	if d.Failed > 1 {
		f.Text += fmt.Sprintf(" (%s, the last one)", words.Counted(int(d.Failed), "failed allocation"))
	}
	say := func(format string, args ...any) { f.Evidence = append(f.Evidence, finding.Sentence(format, args...)) }
	key := finding.Row("rank", d.Rank, "file", d.File)
	say("PyTorch had %s of the device then, of which %s were in use", words.Size(last.Use.Reserved), words.Size(last.Use.Allocated))
	f.Evidence[0] = f.Evidence[0].In("memory", key, "failed", float64(d.Failed))
	if last.Where != 0 {
		say("it was asked for in %s", m.syms.Name(last.Where))
	}
	switch {
	case d.Free >= last.Asked && d.LargestFree < last.Asked:
		say("fragmented: when the snapshot was taken, %s were reserved and free, in blocks of %s at most; expandable segments avoid that", words.Size(d.Free), words.Size(d.LargestFree))
	case last.Use.Reserved-last.Use.Allocated < last.Asked:
		say("it is not fragmentation: what PyTorch had reserved and did not use was less than what was asked for")
	}
	if top := m.largestHolder(d); top != "" {
		say("%s", top)
	}
	return f
}

// largestHolder says which place had most memory at the peak.
func (m *Memory) largestHolder(d *Device) string {
	for i := range m.Holders { // the largest first
		if h := &m.Holders[i]; h.Rank == d.Rank && h.Number == d.Number && h.Peak {
			return fmt.Sprintf("at the peak of %s, %s of that were of %s", words.Size(h.Of), words.Size(h.Holding.Bytes), m.holderName(h))
		}
	}
	return ""
}

// sinceBefore returns in words how much more is in use than before the first entry.
func sinceBefore(more int64) string {
	switch {
	case more > 0:
		return words.Size(more) + " more than before"
	case more < 0:
		return words.Size(-more) + " less than before"
	}
	return "as much as before"
}

// muchTaking: calls for more memory are reported from 1/muchTaking of the recorded time on. A
// process that has all it needs makes none.
const muchTaking = 10

// Words says in one line what memory is used.
func (m *Memory) Words() string {
	var parts []string
	for i := range m.Devices {
		d := &m.Devices[i]
		if len(parts) == 3 {
			parts = append(parts, fmt.Sprintf("%d more", len(m.Devices)-i))
			break
		}
		text := fmt.Sprintf("%s device %d: %s in use of %s reserved", d.Rank, d.Number, words.Size(d.Allocated), words.Size(d.Reserved))
		if d.Told {
			text += fmt.Sprintf(", %s, peak %s", sinceBefore(d.Allocated-d.Replay.Start.Allocated), words.Size(d.Replay.Peak.Allocated))
			if d.PeakTime != 0 {
				text += " at " + words.At(d.PeakTime, "15:04:05.000")
			}
		}
		if d.LargestFree > 0 {
			text += fmt.Sprintf(", %s free in blocks of %s at most", words.Size(d.Free), words.Size(d.LargestFree))
		}
		if length := int64(d.Last - d.First); d.First != 0 && muchTaking*d.Took >= length && length > 0 {
			text += fmt.Sprintf(", %s for more of the device took at most %s of the %s recorded", words.Counted(int(d.Taking), "call"), words.Nearly(d.Took), words.Nearly(length))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + " ('sgtrace report --memory' says whose)"
}
