package gpu

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A gpuRow is a kernel or copy as far as a report on devices needs it.
type gpuRow struct {
	start    trace.Time
	dur      int64
	launch   trace.Time // when the call that launched it began; see called
	launched int64      // how long that call took, ns
	stream   int64
	name     trace.Sym
	class    kernelname.Class
	flags    rowFlags
	grid     profile.Grid // of a kernel that computes
	inStep   int32        // index plus 1 of the innermost step around the call; 0 is no step, or the call is unknown

	waited int64 // ns of dur spent waiting for what ran before it; set once the sweep reaches it
}

type rowFlags uint8

const (
	rowCalled   rowFlags = 1 << iota // launch and launched are known
	rowKernel                        // a kernel, not a copy
	rowGraph                         // launched by a CUDA graph, or a whole graph
	rowUnknown                       // no rule of the classes matches it: class is a guess
	rowMigrated                      // moves pages of unified memory, which no call launches
	rowSized                         // a kernel that computes, and grid is known
	rowStep                          // multiplied by the kind of the step that launched it
)

// flagBits is how many bits flags take.
const flagBits = 8

func (r *gpuRow) called() bool    { return r.flags&rowCalled != 0 }
func (r *gpuRow) step() int       { return int(r.flags / rowStep) }
func (r *gpuRow) end() trace.Time { return r.start + trace.Time(r.dur) }

// launchedLate reports whether the host was late for the gap that begins at from and ends with r: it
// launched r during the gap, or a slow launch was still under way. A kernel cannot start until its
// launch has handed it to the device.
func (r *gpuRow) launchedLate(from trace.Time) bool {
	end := r.launch + trace.Time(r.launched)
	underway := r.flags&rowKernel != 0 && end > from && (r.launched >= slowLaunch || min(r.start, end) >= from+kernelGap)
	return r.called() && (r.launch > from || underway)
}

// compareRows orders rows by their start. Of rows that start together, the one that was launched first
// comes first, as the gap before them is put down to it. Beyond that, the order does not matter.
func compareRows(a, b *gpuRow) int {
	if c := cmp.Compare(a.start, b.start); c != 0 {
		return c
	}
	if a.called() != b.called() {
		if a.called() {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.launch, b.launch)
}

// gpuRows holds rows that arrive roughly in order, and returns them in order. It sorts a few thousand
// at a time, packs them into about ten bytes each, and merges these runs when they are read, so a row
// that is late by any amount still comes out in its place.
type gpuRows struct {
	buffer   []gpuRow
	unsorted bool   // some row of the buffer belongs before its predecessor
	packed   []byte // scratch space of flush
	runs     []packedRows
	n        int
}

// A packedRows is a run of rows in order, each stored as its differences from the one before it.
type packedRows struct {
	blocks [][]byte
	last   gpuRow
	steps  int32 // how many steps of the rank precede those that the rows count from
}

// bufferedRows is how many rows are sorted at once.
const bufferedRows = 4096

func (g *gpuRows) add(r *gpuRow) {
	if n := len(g.buffer); n > 0 && compareRows(&g.buffer[n-1], r) > 0 {
		g.unsorted = true
	}
	if g.buffer = append(g.buffer, *r); len(g.buffer) == bufferedRows {
		g.flush()
	}
}

// flush packs the buffered rows, into the last run if they continue it.
func (g *gpuRows) flush() {
	if len(g.buffer) == 0 {
		return
	}
	if g.unsorted {
		slices.SortFunc(g.buffer, func(a, b gpuRow) int { return compareRows(&a, &b) })
		g.unsorted = false
	}
	last := len(g.runs) - 1
	if last < 0 || compareRows(&g.runs[last].last, &g.buffer[0]) > 0 {
		g.runs = append(g.runs, packedRows{})
		last++
	}
	run := &g.runs[last]
	g.packed = g.packed[:0]
	for i := range g.buffer {
		g.packed = run.append(g.packed, &g.buffer[i])
	}
	block := memory.Make[byte](len(g.packed))
	copy(block, g.packed)
	run.blocks = append(run.blocks, block)
	g.n += len(g.buffer)
	g.buffer = g.buffer[:0]
}

// close packs the remaining rows.
func (g *gpuRows) close() {
	g.flush()
	g.buffer, g.packed = nil, nil
}

// join adds the rows of o, whose steps come after the first steps of the rank.
func (g *gpuRows) join(o *gpuRows, steps int) {
	for _, run := range o.runs {
		run.steps += int32(steps)
		g.runs = append(g.runs, run)
	}
	g.n += o.n
}

// append packs a row that follows the last one.
func (p *packedRows) append(to []byte, r *gpuRow) []byte {
	to = binary.AppendUvarint(to, uint64(r.start)-uint64(p.last.start))
	to = binary.AppendUvarint(to, uint64(r.dur))
	to = binary.AppendUvarint(to, uint64(r.class)<<flagBits|uint64(r.flags))
	to = binary.AppendVarint(to, r.stream)
	to = binary.AppendUvarint(to, uint64(r.name))
	if r.called() {
		to = binary.AppendVarint(to, int64(uint64(r.start)-uint64(r.launch)))
		to = binary.AppendUvarint(to, uint64(r.launched))
		to = binary.AppendVarint(to, int64(r.inStep)-int64(p.last.inStep))
	}
	if r.flags&rowSized != 0 {
		to = binary.AppendVarint(to, int64(r.grid))
	}
	p.last = *r
	return to
}

// A rowReader unpacks the rows of a run.
type rowReader struct {
	memory.Packed
	row    gpuRow
	inStep int32 // of row, before steps is added
	steps  int32
}

// next moves to the next row; it returns false after the last one.
func (r *rowReader) next() bool {
	if !r.More() {
		return false
	}
	row := &r.row
	row.start = trace.Time(uint64(row.start) + r.Unsigned())
	row.dur = int64(r.Unsigned())
	kind := r.Unsigned()
	row.class, row.flags = kernelname.Class(kind>>flagBits), rowFlags(kind&(1<<flagBits-1))
	row.stream = r.Signed()
	row.name = trace.Sym(r.Unsigned())
	row.launch, row.launched, row.waited, row.grid, row.inStep = 0, 0, 0, 0, 0
	last := r.inStep
	r.inStep = 0
	if row.called() {
		row.launch = trace.Time(uint64(row.start) - uint64(r.Signed()))
		row.launched = int64(r.Unsigned())
		r.inStep = last + int32(r.Signed())
	}
	if r.inStep > 0 {
		row.inStep = r.inStep + r.steps
	}
	if row.flags&rowSized != 0 {
		row.grid = profile.Grid(r.Signed())
	}
	return true
}

// drain passes all rows to f in order, and frees them.
func (g *gpuRows) drain(f func(*gpuRow)) {
	var readers []*rowReader
	for _, run := range g.runs {
		r := &rowReader{Packed: memory.Unpack(run.blocks), steps: run.steps}
		if r.next() {
			readers = append(readers, r)
		}
	}
	*g = gpuRows{}
	before := func(a, b *rowReader) bool { return compareRows(&a.row, &b.row) < 0 }
	order.Merge(readers, before, (*rowReader).next, func(r *rowReader) { f(&r.row) })
}
