package profile

import (
	"math"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// Collectives is a table of collectives. A job has tens of millions of them but few kinds, so that a row takes
// 20 bytes: kind, time, duration, and sequence number. Data that a producer lacks takes no space. The zero
// value is an empty table.
type Collectives struct {
	kinds []Collective         // without Event, Time, Dur, CommsID, Seq and Correlation
	known map[Collective]int32 // index in kinds, up to maxKnown kinds

	rows  []collectiveRow
	large map[largeNumber]int64
	event []int32  // plus one; here and below, zeros at the end are omitted
	call  []int64  // Correlation
	comms []uint64 // CommsID
}

// A collectiveRow is the part of a collective that differs within its kind.
type collectiveRow struct {
	time     [2]uint32 // lower half first
	kind     int32     // index in kinds
	dur, seq uint32    // seq plus one; isLarge if the number is in large
}

// isLarge marks a number that does not fit in 4 bytes, and a largeNumber is its key.
const isLarge = math.MaxUint32

type largeNumber struct {
	row int32
	seq bool // otherwise dur
}

// maxKnown is the number of kinds that are looked up. Beyond that, as where every all-to-all has other sizes,
// rows have kinds of their own.
const maxKnown = 4096

// CollectivesOf returns a table of some collectives.
func CollectivesOf(list ...Collective) (c Collectives) {
	c.Grow(len(list))
	for i := range list {
		c.Add(&list[i])
	}
	return c
}

// Len returns the number of collectives.
func (c *Collectives) Len() int { return len(c.rows) }

// Grow makes room for n more.
func (c *Collectives) Grow(n int) { c.rows = memory.Grow(c.rows, n) }

// Add adds a collective.
func (c *Collectives) Add(x *Collective) {
	kind := c.Kind(x)
	c.rows = memory.Append(c.rows, collectiveRow{})
	c.set(len(c.rows)-1, kind, x)
}

// AddRun adds collectives of a kind, given their starts, durations, sequence numbers, and CommsIDs. They have
// no Event and no Correlation. Zeros at the end of the last three lists may be omitted.
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

// Kind returns the number of x's kind, for [Collectives.AddRun].
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

// Set replaces a collective with x.
func (c *Collectives) Set(i int, x *Collective) { c.set(i, c.Kind(x), x) }

func (c *Collectives) set(i int, kind int32, x *Collective) {
	c.rows[i] = collectiveRow{time: [2]uint32{uint32(x.Time), uint32(x.Time >> 32)}, kind: kind,
		dur: c.small(largeNumber{int32(i), false}, x.Dur), seq: c.small(largeNumber{int32(i), true}, x.Seq+1)}
	c.event = setNumber(c.event, i, x.Event+1)
	c.call = setNumber(c.call, i, x.Correlation)
	c.comms = setNumber(c.comms, i, x.CommsID)
}

// small returns a number in 4 bytes, or stores it in large and returns isLarge.
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

// number returns the number that small stored.
func (c *Collectives) number(at largeNumber, v uint32) int64 {
	if v == isLarge {
		return c.large[at]
	}
	return int64(v)
}

// setNumber sets a number of a list in which zeros at the end are omitted.
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

// Tell copies the fields that differ within a kind to x, which must be of the collective's kind.
func (c *Collectives) Tell(i int, x *Collective) {
	x.Time, x.Dur, x.Seq = c.Start(i), c.Dur(i), c.Seq(i)
	x.Event, x.Correlation, x.CommsID = numberOf(c.event, i)-1, numberOf(c.call, i), c.CommsID(i)
}

// Kinds returns the kinds of the collectives, by first appearance: everything that [Collectives.At] returns
// except the event, the time, and the numbers. Some may be equal, or unused.
func (c *Collectives) Kinds() []Collective { return c.kinds }

// KindOf returns the index in Kinds of a collective's kind.
func (c *Collectives) KindOf(i int) int32 { return c.rows[i].kind }

// Start returns the start of a collective.
func (c *Collectives) Start(i int) trace.Time {
	t := &c.rows[i].time
	return trace.Time(t[1])<<32 | trace.Time(t[0])
}

// End returns the end of a collective.
func (c *Collectives) End(i int) trace.Time { return c.Start(i) + trace.Time(c.Dur(i)) }

// Dur returns the duration of a collective in ns.
func (c *Collectives) Dur(i int) int64 {
	return c.number(largeNumber{int32(i), false}, c.rows[i].dur)
}

// Seq returns the sequence number of a collective; -1 is unknown.
func (c *Collectives) Seq(i int) int64 {
	return c.number(largeNumber{int32(i), true}, c.rows[i].seq) - 1
}

// CommsID returns the number that a collective has on all ranks; 0 is unknown.
func (c *Collectives) CommsID(i int) uint64 { return numberOf(c.comms, i) }

// HasCommsIDs reports whether some collectives have a CommsID.
func (c *Collectives) HasCommsIDs() bool { return len(c.comms) > 0 }
