package profile

import (
	"math"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// Collectives is a table of collectives. A job has tens of millions of them and a few
// kinds, so that a row takes 20 bytes: its kind, its time, its duration and its number. What
// a producer does not tell takes none. The zero value is an empty table.
type Collectives struct {
	kinds []Collective         // without Event, Time, Dur, CommsID, Seq and Correlation
	known map[Collective]int32 // indexes of the first of them

	rows  []collectiveRow
	large map[largeNumber]int64
	event []int32  // plus one; zeros at the end are left out, here and below
	call  []int64  // Correlation
	comms []uint64 // CommsID
}

// A collectiveRow is what tells a collective from others of its kind.
type collectiveRow struct {
	time     [2]uint32 // the lower half first
	kind     int32     // index into kinds
	dur, seq uint32    // seq plus one; isLarge of those that are elsewhere
}

// isLarge stands for a number that 4 bytes do not hold, and a largeNumber is where.
const isLarge = math.MaxUint32

type largeNumber struct {
	row int32
	seq bool // else dur
}

// maxKnown is how many kinds are found again. Beyond, as where each all-to-all sends something
// else, rows have kinds of their own.
const maxKnown = 4096

// CollectivesOf returns a table of some collectives.
func CollectivesOf(list ...Collective) (c Collectives) {
	c.Grow(len(list))
	for i := range list {
		c.Add(&list[i])
	}
	return c
}

// Len returns how many collectives there are.
func (c *Collectives) Len() int { return len(c.rows) }

// Grow makes room for n more.
func (c *Collectives) Grow(n int) { c.rows = memory.Grow(c.rows, n) }

// Add adds a collective.
func (c *Collectives) Add(x *Collective) {
	kind := c.Kind(x)
	c.rows = memory.Append(c.rows, collectiveRow{})
	c.set(len(c.rows)-1, kind, x)
}

// AddRun adds collectives of a kind: when each began, how long it took, its Seq, and its CommsID.
// They have no Event and no Correlation. Zeros
// at the end of the last three lists may be left out.
func (c *Collectives) AddRun(kind int32, start, dur, seq, comms []int64) {
	rows := c.rows
	for i, at := range start {
		row := int32(len(rows))
		rows = memory.Append(rows, collectiveRow{time: [2]uint32{uint32(at), uint32(at >> 32)}, kind: kind,
			dur: c.small(largeNumber{row, false}, numberOf(dur, i)), seq: c.small(largeNumber{row, true}, numberOf(seq, i)+1)})
		c.comms = setNumber(c.comms, int(row), uint64(numberOf(comms, i)))
	}
	c.rows = rows
}

// Kind returns the number of the kind that x is of, for [Collectives.AddRun].
func (c *Collectives) Kind(x *Collective) int32 {
	kind := *x
	kind.Event, kind.Time, kind.Dur, kind.CommsID, kind.Seq, kind.Correlation = 0, 0, 0, 0, 0, 0
	if n := len(c.rows); n > 0 && c.kinds[c.rows[n-1].kind] == kind {
		return c.rows[n-1].kind
	}
	if k, ok := c.known[kind]; ok {
		return k
	}
	k := int32(len(c.kinds))
	c.kinds = append(c.kinds, kind)
	if k < maxKnown {
		if c.known == nil {
			c.known = map[Collective]int32{}
		}
		c.known[kind] = k
	}
	return k
}

// Set puts x in the place of a collective.
func (c *Collectives) Set(i int, x *Collective) { c.set(i, c.Kind(x), x) }

func (c *Collectives) set(i int, kind int32, x *Collective) {
	c.rows[i] = collectiveRow{time: [2]uint32{uint32(x.Time), uint32(x.Time >> 32)}, kind: kind,
		dur: c.small(largeNumber{int32(i), false}, x.Dur), seq: c.small(largeNumber{int32(i), true}, x.Seq+1)}
	c.event = setNumber(c.event, i, x.Event+1)
	c.call = setNumber(c.call, i, x.Correlation)
	c.comms = setNumber(c.comms, i, x.CommsID)
}

// small returns a number in 4 bytes, or isLarge of one that is large then.
func (c *Collectives) small(at largeNumber, v int64) uint32 {
	if v >= 0 && v < isLarge {
		return uint32(v)
	}
	if c.large == nil {
		c.large = map[largeNumber]int64{}
	}
	c.large[at] = v
	return isLarge
}

// number returns what small has put there.
func (c *Collectives) number(at largeNumber, v uint32) int64 {
	if v == isLarge {
		return c.large[at]
	}
	return int64(v)
}

// setNumber sets a number of a list of which zeros at the end are left out.
func setNumber[T int32 | int64 | uint64](list []T, i int, v T) []T {
	if v == 0 && i >= len(list) {
		return list
	}
	for len(list) <= i {
		list = memory.Append(list, 0)
	}
	list[i] = v
	return list
}

// numberOf returns a number of such a list.
func numberOf[T int32 | int64 | uint64](list []T, i int) T {
	if i >= len(list) {
		return 0
	}
	return list[i]
}

// At returns a collective.
func (c *Collectives) At(i int) Collective {
	x := c.kinds[c.rows[i].kind]
	c.Tell(i, &x)
	return x
}

// Tell puts all that tells a collective from others of its kind into x, which is of that kind.
func (c *Collectives) Tell(i int, x *Collective) {
	x.Time, x.Dur, x.Seq = c.Start(i), c.Dur(i), c.Seq(i)
	x.Event, x.Correlation, x.CommsID = numberOf(c.event, i)-1, numberOf(c.call, i), c.CommsID(i)
}

// Kinds returns the kinds of the collectives, by first appearance: all that [Collectives.At]
// returns but the event, the time, and the numbers. Some may be equal, or of no collective.
func (c *Collectives) Kinds() []Collective { return c.kinds }

// KindOf returns which of Kinds a collective is of.
func (c *Collectives) KindOf(i int) int32 { return c.rows[i].kind }

// Start returns when a collective began.
func (c *Collectives) Start(i int) trace.Time {
	t := &c.rows[i].time
	return trace.Time(t[1])<<32 | trace.Time(t[0])
}

// End returns when it ended.
func (c *Collectives) End(i int) trace.Time { return c.Start(i) + trace.Time(c.Dur(i)) }

// Dur returns how long it took, in ns.
func (c *Collectives) Dur(i int) int64 {
	return c.number(largeNumber{int32(i), false}, c.rows[i].dur)
}

// Seq returns its sequence number; -1 is unknown.
func (c *Collectives) Seq(i int) int64 {
	return c.number(largeNumber{int32(i), true}, c.rows[i].seq) - 1
}

// CommsID returns the number that it has on all ranks; 0 is unknown.
func (c *Collectives) CommsID(i int) uint64 { return numberOf(c.comms, i) }

// HasCommsIDs reports whether some have a CommsID.
func (c *Collectives) HasCommsIDs() bool { return len(c.comms) > 0 }
