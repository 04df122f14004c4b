package allocations

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// OutOfMemory is the subkind of findings of devices that had no memory left.
const OutOfMemory = "out of memory"

// Findings are devices that had no memory for an allocation.
func (m *Memory) Findings() (list []finding.Finding, check finding.Check) {
	check = finding.Check{What: "allocations that failed", Of: "device with a recording of its allocator", Needed: 1}
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
		check.Reason = "snapshots say nothing of what was before them"
	}
	return list, check
}

// outOfMemory says what a device had no memory for: first what was asked for last, after which most
// processes end.
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
	if top := m.most(d); top != "" {
		say("%s", top)
	}
	return f
}

// most says who had most at the peak.
func (m *Memory) most(d *Device) string {
	for i := range m.Holders { // most first
		if h := &m.Holders[i]; h.Rank == d.Rank && h.Number == d.Number && h.Peak {
			return fmt.Sprintf("at the peak of %s, %s of that were of %s", words.Size(h.Of), words.Size(h.Holding.Bytes), m.holderName(h))
		}
	}
	return ""
}

// Words says in a line what memory is used.
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
			text += fmt.Sprintf(", peak %s", words.Size(d.Replay.Peak.Allocated))
			if d.PeakTime != 0 {
				text += " at " + words.At(d.PeakTime, "15:04:05.000")
			}
			text += fmt.Sprintf(", %s more than before", words.Size(d.Replay.Grown))
		}
		if d.LargestFree > 0 {
			text += fmt.Sprintf(", %s free in blocks of %s at most", words.Size(d.Free), words.Size(d.LargestFree))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + " ('sgtrace report --memory' says whose)"
}
