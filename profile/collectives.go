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

	kind       []int32 // index into kinds
	time       []trace.Time
	dur        numbers
	seq, event numbers  // plus one
	call       numbers  // Correlation
	comms      []uint64 // zeros at the end are left out
}

// mostKnown is how many kinds are found again. Beyond, as where each all-to-all sends something
// else, rows have kinds of their own.
const mostKnown = 4096

// CollectivesOf returns a table of some collectives.
func CollectivesOf(list ...Collective) (c Collectives) {
	c.Grow(len(list))
	for i := range list {
		c.Add(&list[i])
	}
	return c
}

// Len returns how many collectives there are.
func (c *Collectives) Len() int { return len(c.kind) }

// Grow makes room for n more.
func (c *Collectives) Grow(n int) {
	c.kind, c.time, c.dur.low = memory.Grow(c.kind, n), memory.Grow(c.time, n), memory.Grow(c.dur.low, n)
}

// Add adds a collective.
func (c *Collectives) Add(x *Collective) { c.AddOf(c.Kind(x), x) }

// Kind returns the number of the kind that x is of, for [Collectives.AddOf].
func (c *Collectives) Kind(x *Collective) int32 {
	kind := *x
	kind.Event, kind.Time, kind.Dur, kind.CommsID, kind.Seq, kind.Correlation = 0, 0, 0, 0, 0, 0
	if n := len(c.kind); n > 0 && c.kinds[c.kind[n-1]] == kind {
		return c.kind[n-1]
	}
	if k, ok := c.known[kind]; ok {
		return k
	}
	k := int32(len(c.kinds))
	c.kinds = append(c.kinds, kind)
	if k < mostKnown {
		if c.known == nil {
			c.known = map[Collective]int32{}
		}
		c.known[kind] = k
	}
	return k
}

// AddOf adds a collective of a kind. Of x, only what kinds do not have counts.
func (c *Collectives) AddOf(kind int32, x *Collective) {
	c.kind, c.time = memory.Append(c.kind, kind), memory.Append(c.time, x.Time)
	c.setNumbers(c.Len()-1, x)
}

// setNumbers sets what neither the kind nor the time of a collective tells.
func (c *Collectives) setNumbers(i int, x *Collective) {
	c.dur.set(i, x.Dur)
	c.seq.set(i, x.Seq+1)
	c.event.set(i, int64(x.Event)+1)
	c.call.set(i, x.Correlation)
	if x.CommsID != 0 || i < len(c.comms) {
		for len(c.comms) <= i {
			c.comms = memory.Append(c.comms, 0)
		}
		c.comms[i] = x.CommsID
	}
}

// At returns a collective.
func (c *Collectives) At(i int) Collective {
	x := c.kinds[c.kind[i]]
	x.Time, x.Dur = c.time[i], c.dur.at(i)
	x.Seq, x.Event, x.Correlation = c.Seq(i), int32(c.event.at(i)-1), c.call.at(i)
	x.CommsID = c.CommsID(i)
	return x
}

// Set puts x in the place of a collective.
func (c *Collectives) Set(i int, x *Collective) {
	c.kind[i], c.time[i] = c.Kind(x), x.Time
	c.setNumbers(i, x)
}

// Kinds are the kinds of the collectives, by first appearance: all that [Collectives.At]
// returns but the event, the time, and the numbers. Some may be equal, or of no collective.
func (c *Collectives) Kinds() []Collective { return c.kinds }

// KindOf returns which of Kinds a collective is of.
func (c *Collectives) KindOf(i int) int32 { return c.kind[i] }

// Start and End return when a collective began and ended, Seq and CommsID its numbers.
func (c *Collectives) Start(i int) trace.Time { return c.time[i] }
func (c *Collectives) End(i int) trace.Time   { return c.time[i] + trace.Time(c.dur.at(i)) }
func (c *Collectives) Seq(i int) int64        { return c.seq.at(i) - 1 }
func (c *Collectives) CommsID(i int) uint64 {
	if i >= len(c.comms) {
		return 0
	}
	return c.comms[i]
}

// numbers are whole numbers, most of which are small, in 4 bytes each. Zeros at the end take
// none.
type numbers struct {
	low  []uint32 // isWide of those that are elsewhere
	wide map[int]int64
}

// isWide stands for a number that 4 bytes do not hold.
const isWide = math.MaxUint32

func (x *numbers) set(i int, v int64) {
	if v == 0 && i >= len(x.low) {
		return
	}
	for len(x.low) <= i {
		x.low = memory.Append(x.low, 0)
	}
	if v >= 0 && v < isWide {
		x.low[i] = uint32(v)
		return
	}
	x.low[i] = isWide
	if x.wide == nil {
		x.wide = map[int]int64{}
	}
	x.wide[i] = v
}

func (x *numbers) at(i int) int64 {
	if i >= len(x.low) {
		return 0
	}
	if v := x.low[i]; v != isWide {
		return int64(v)
	}
	return x.wide[i]
}
