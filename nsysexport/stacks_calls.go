package nsysexport

import (
	"encoding/binary"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// chainedCalls are calls that have stacks of a kind, and these stacks. Calls are held packed,
// in some ten bytes each: as the differences from the one before.
type chainedCalls struct {
	chains chains
	chunks [][]byte
	last   rows.ChainedCall
}

const (
	callChunk = 1 << 16
	// maxPackedCall is the most that a call takes: six integers.
	maxPackedCall = 6 * binary.MaxVarintLen64
)

// read reads the calls that are wanted; nil is all. Of them, the stacks are needed.
func (c *chainedCalls) read(w *walk, kind rows.ChainKind, wanted func(*profile.Sample) bool) {
	names := trace.Renamed(w.src.Options.Syms, rows.APIName)
	out := profile.Sample{CPU: -1}
	w.src.ChainedCalls(kind, func(x *rows.ChainedCall) bool {
		name := names.Of(x.Name)
		if !w.event(&out.Event, x.PID, x.Start, x.End, 0, name) {
			return true
		}
		if out.TID = int64(x.TID); wanted == nil || wanted(&out) {
			x.Name = name
			c.add(x)
			c.chains.need(x.Chain)
		}
		return true
	})
}

func (c *chainedCalls) add(x *rows.ChainedCall) {
	n := len(c.chunks)
	if n == 0 || len(c.chunks[n-1]) > callChunk-maxPackedCall {
		c.chunks = append(c.chunks, make([]byte, 0, callChunk))
		n++
	}
	b := binary.AppendVarint(c.chunks[n-1], int64(x.Start-c.last.Start))
	b = binary.AppendVarint(b, int64(x.End-x.Start))
	b = binary.AppendVarint(b, int64(x.PID)-int64(c.last.PID))
	b = binary.AppendVarint(b, int64(x.TID)-int64(c.last.TID))
	b = binary.AppendUvarint(b, uint64(x.Name))
	c.chunks[n-1] = binary.AppendVarint(b, x.Chain-c.last.Chain)
	c.last = *x
}

// pass yields the calls that turned out to have a stack, and gives them up. It reports whether
// more are asked for.
func (c *chainedCalls) pass(w *walk, out *profile.Sample, yield func(*profile.Sample) bool) bool {
	r := memory.Unpack(c.chunks)
	var x rows.ChainedCall
	for r.More() {
		x.Start += trace.Time(r.Signed())
		x.End = x.Start + trace.Time(r.Signed())
		x.PID += int32(r.Signed())
		x.TID += int32(r.Signed())
		x.Name = trace.Sym(r.Unsigned())
		x.Chain += r.Signed()
		if out.Stack = c.chains.stackOf(x.Chain); out.Stack == 0 {
			continue
		}
		w.event(&out.Event, x.PID, x.Start, x.End, 0, x.Name)
		if out.TID = int64(x.TID); !yield(out) {
			return false
		}
	}
	return true
}
