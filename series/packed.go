package series

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A column has the samples of one series, packed: most differ by a few bytes from the previous one, since
// stamps are in whole seconds or milliseconds, and values have few decimals.
type column struct {
	blocks []block
	n      int
}

// A block has consecutive samples of one input. Each sample is three numbers: the differences of time, line,
// and value from the previous sample, in units of the block. A value that is not a multiple of the unit is
// written in full.
type block struct {
	data     []byte
	n        int
	base     trace.Time // origin of times
	from, to trace.Time // times of its earliest and its latest sample
	last     Sample     // the last sample added; its Value is not used
	number   int64      // value of the last sample in units
	source   uint32
	unit     uint8 // of times: index into units
	decimals uint8 // of values: index into scales
	disorder bool  // some sample is earlier than its predecessor
}

// sealed is the size in bytes at which a block is full; then it may move to the file of package memory.
const sealed = 32 << 10

// longest is the maximum size of a sample in bytes.
const longest = 3 * binary.MaxVarintLen64

var (
	units  = [...]trace.Time{1, 1e3, 1e6, 1e9}
	scales = [...]float64{1, 10, 100, 1000, 10000}
)

// unitOf returns the longest unit that divides a time.
func unitOf(t trace.Time) uint8 {
	for u := len(units) - 1; u > 0; u-- {
		if t%units[u] == 0 {
			return uint8(u)
		}
	}
	return 0
}

// asNumber returns a value in units of 10^-decimals; ok is false if it is not a multiple.
func asNumber(v float64, decimals uint8) (n int64, ok bool) {
	const exact = 1 << 53
	if whole := int64(v); decimals == 0 && float64(whole) == v && whole < exact && whole > -exact {
		return whole, true
	}
	scaled := math.RoundToEven(v * scales[decimals])
	if !(scaled < exact && scaled > -exact) {
		return 0, false
	}
	return int64(scaled), scaled/scales[decimals] == v
}

// add adds a sample of an input, whose time is a multiple of unit.
func (c *column) add(x Sample, source uint32, unit uint8) {
	var b *block
	if n := len(c.blocks); n > 0 {
		b = &c.blocks[n-1]
	}
	if b == nil || b.source != source || unit < b.unit || b.last.mark>>lineBits != x.mark>>lineBits || len(b.data) >= sealed {
		b = c.begin(&x, source, unit)
	}
	number, ok := asNumber(x.Value, b.decimals)
	for finer := b.decimals + 1; !ok && int(finer) < len(scales); finer++ {
		if number, ok = asNumber(x.Value, finer); ok {
			if b.n > 0 {
				b = c.begin(&x, source, b.unit)
			}
			b.decimals = finer
		}
	}
	c.n++
	b.put(x, number, ok)
}

// begin starts a block with the same resolution as the previous one.
func (c *column) begin(x *Sample, source uint32, unit uint8) *block {
	next := block{base: x.Time, from: x.Time, to: x.Time, last: *x, source: source, unit: unit}
	next.last.mark &^= 1<<lineBits - 1
	if n := len(c.blocks); n > 0 {
		b := &c.blocks[n-1]
		if b.source == source {
			next.decimals = b.decimals
			if b.unit < unit && x.Time%units[b.unit] == 0 {
				next.unit = b.unit
			}
		}
		if len(b.data) >= sealed { // the next one will be as long
			next.data = make([]byte, 0, sealed+longest)
			if memory.Tight(sealed) {
				if moved := memory.Spill(b.data); moved != nil {
					b.data, next.data = moved, b.data[:0]
				}
			}
		}
	}
	c.blocks = append(c.blocks, next)
	return &c.blocks[len(c.blocks)-1]
}

func (b *block) put(x Sample, number int64, whole bool) {
	later := x.Time - b.last.Time
	if later < 0 {
		b.disorder = true
	}
	b.from, b.to = min(b.from, x.Time), max(b.to, x.Time)
	ticks := int64(later)
	switch b.unit { // division by constants, which is fast
	case 1:
		ticks /= 1e3
	case 2:
		ticks /= 1e6
	case 3:
		ticks /= 1e9
	}
	data := binary.AppendVarint(b.data, ticks)
	data = binary.AppendUvarint(data, uint64((x.mark-b.last.mark)&(1<<lineBits-1)))
	if whole {
		more := number - b.number
		data = binary.AppendUvarint(data, uint64(more<<1^more>>63)<<1)
		b.number = number
	} else {
		data = binary.LittleEndian.AppendUint64(append(data, 1), math.Float64bits(x.Value))
	}
	b.data, b.last = data, x
	b.n++
}

// A Cursor iterates over the samples of a series.
type Cursor struct {
	blocks []block // not started yet
	at     Sample
	data   []byte
	left   int // number of samples left in the block
	number int64
	unit   trace.Time
	scale  float64
}

// Next returns the next sample; ok is false after the last one.
func (c *Cursor) Next() (x Sample, ok bool) {
	for c.left == 0 {
		if len(c.blocks) == 0 {
			return x, false
		}
		b := &c.blocks[0]
		c.blocks, c.data, c.left, c.number = c.blocks[1:], b.data, b.n, 0
		c.unit, c.scale = units[b.unit], scales[b.decimals]
		c.at.Time, c.at.mark = b.base, b.last.mark&^(1<<lineBits-1)
		memory.Touch(len(b.data))
	}
	c.left--
	data := c.data
	later, line, more := uint64(data[0]), uint64(data[1]), uint64(data[2])
	if n := 3; later|line|more < 0x80 && more&1 == 0 {
		c.data = data[n:]
	} else {
		later, n = binary.Uvarint(data)
		data = data[n:]
		line, n = binary.Uvarint(data)
		data = data[n:]
		more, n = binary.Uvarint(data)
		c.data = data[n:]
	}
	c.at.Time += trace.Time(int64(later>>1)^-int64(later&1)) * c.unit
	c.at.mark = c.at.mark&^(1<<lineBits-1) | (c.at.mark+uint32(line))&(1<<lineBits-1)
	if more&1 == 0 {
		c.number += int64(more>>2) ^ -int64(more>>1&1)
		if c.at.Value = float64(c.number); c.scale != 1 {
			c.at.Value /= c.scale
		}
	} else {
		c.at.Value = math.Float64frombits(binary.LittleEndian.Uint64(c.data))
		c.data = c.data[8:]
	}
	return c.at, true
}

// Walk returns a cursor before the first sample of a series.
func (s *Set) Walk(series int) Cursor {
	if series >= len(s.columns) {
		return Cursor{}
	}
	return Cursor{blocks: s.columns[series].blocks}
}

// Each yields the samples of a series; once the set is finished, in order of time.
func (s *Set) Each(series int) iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		c := s.Walk(series)
		for x, ok := c.Next(); ok; x, ok = c.Next() {
			if !yield(x) {
				return
			}
		}
	}
}

// from yields the samples of one input in a series.
func (s *Set) from(source uint32, series int) iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		if series >= len(s.columns) {
			return
		}
		for _, b := range s.columns[series].blocks {
			c := Cursor{blocks: []block{b}}
			for x, ok := c.Next(); b.source == source && ok; x, ok = c.Next() {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// N returns the number of samples in a series.
func (s *Set) N(series int) int {
	if series >= len(s.columns) {
		return 0
	}
	return s.columns[series].n
}

// Extent returns the times of the first and the last sample of a series, and their coarsest resolution in
// ns: see [Sample.Within].
func (s *Set) Extent(series int) (from, to trace.Time, within int64) {
	if s.N(series) == 0 {
		return 0, 0, 0
	}
	from = s.columns[series].blocks[0].from
	for _, b := range s.columns[series].blocks {
		from, to, within = min(from, b.from), max(to, b.to), max(within, b.last.Within())
	}
	return from, to, within
}

// Len returns the total number of samples.
func (s *Set) Len() (n int) {
	return order.SumRows(s.columns, func(c *column) int { return c.n })
}

// sort sorts samples by time; samples with equal times keep their order. Most are sorted already: a log is
// written in order of time, and a rotated one comes in pieces.
func (c *column) sort() {
	byTime := func(a, b block) int { return cmp.Compare(a.from, b.from) }
	moved := !slices.IsSortedFunc(c.blocks, byTime)
	if moved {
		slices.SortStableFunc(c.blocks, byTime)
	}
	sorted := true
	for i := range c.blocks {
		b := &c.blocks[i]
		sorted = sorted && !b.disorder
		if i > 0 {
			before := c.blocks[i-1].to
			sorted = sorted && (before < b.from || before == b.from && !moved)
		}
	}
	if sorted {
		return
	}
	slices.SortStableFunc(c.blocks, func(a, b block) int { return cmp.Compare(a.source, b.source) })
	all := memory.Make[Sample](c.n)[:0]
	cursor := Cursor{blocks: c.blocks}
	for x, ok := cursor.Next(); ok; x, ok = cursor.Next() {
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(a, b Sample) int { return cmp.Compare(a.Time, b.Time) })
	*c = column{}
	for _, x := range all {
		c.add(x, 0, unitOf(x.Time))
	}
}
