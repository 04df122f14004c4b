package testexport

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protobuf message being written.
type message []byte

func (m message) varint(field protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m message) fixed(field protowire.Number, v uint64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), v)
}

func (m message) bytes(field protowire.Number, v []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), v)
}

func (m message) text(field protowire.Number, v string) message { return m.bytes(field, []byte(v)) }

// A perfettoTrace is written as the Perfetto SDK does: in one sequence that begins with the interned strings, and with a
// clock that counts from event to event.
type perfettoTrace struct {
	file     message
	last     int64
	ids      [4]map[string]uint64 // of categories, names, names of arguments
	interned message              // new interned strings for the next packet
}

const sdkSequence = 3

func (w *perfettoTrace) packet(m message) { w.file = w.file.bytes(1, m) }

func (w *perfettoTrace) id(table protowire.Number, text string) uint64 {
	if w.ids[table] == nil {
		w.ids[table] = map[string]uint64{}
	}
	id, ok := w.ids[table][text]
	if !ok {
		id = uint64(len(w.ids[table]) + 1)
		w.ids[table][text] = id
		w.interned = w.interned.bytes(table, message(nil).varint(1, id).text(2, text))
	}
	return id
}

// event writes a TrackEvent at a time on CLOCK_BOOTTIME.
func (w *perfettoTrace) event(at int64, event message) {
	p := message(nil)
	if at >= w.last {
		p = p.varint(8, uint64(at-w.last))
		w.last = at
	} else {
		p = p.varint(8, uint64(at)).varint(58, 6)
	}
	if p = p.varint(10, sdkSequence).varint(13, 2); len(w.interned) > 0 {
		p, w.interned = p.bytes(12, w.interned), nil
	}
	w.packet(p.bytes(11, event))
}

// slice writes the begin and the end of a slice on a track. args are alternating names and values: int64 or string.
func (w *perfettoTrace) slice(track uint64, category, name string, start, end int64, counters message, args ...any) {
	e := message(nil).varint(9, 1).varint(11, track).varint(3, w.id(1, category)).varint(10, w.id(2, name)).fixed(47, uint64(start)*0x9e3779b97f4a7c15)
	for i := 0; i < len(args); i += 2 {
		a := message(nil).varint(1, w.id(3, args[i].(string)))
		switch v := args[i+1].(type) {
		case int64:
			a = a.varint(3, uint64(v))
		case int:
			a = a.varint(4, uint64(v))
		case string:
			a = a.text(6, v)
		}
		e = e.bytes(4, a)
	}
	w.event(start, append(e, counters...))
	w.event(end, message(nil).varint(9, 2).varint(11, track).varint(3, w.id(1, category)))
}

func (w *perfettoTrace) track(uuid uint64, name string, more message) {
	w.packet(message(nil).varint(10, sdkSequence).bytes(60, append(message(nil).varint(1, uuid).text(2, name), more...)))
}

// begin writes everything before the events.
func (w *perfettoTrace) begin(r *ROCm, p *Rank) {
	clock := func(id, at uint64) message { return message(nil).varint(1, id).varint(2, at) }
	w.packet(message(nil).varint(10, 1).bytes(6, message(nil).bytes(1, clock(6, uint64(p.End))).bytes(1, clock(1, uint64(p.End+r.Booted))).bytes(1, clock(3, uint64(p.End-5000))).varint(2, 6)))
	w.packet(message(nil).varint(10, 1).bytes(33, message(nil).bytes(1, message(nil).varint(1, 1<<20))))
	w.last = p.Begin
	w.packet(message(nil).varint(10, sdkSequence).varint(13, 1).bytes(59, message(nil).varint(58, 64).bytes(11, message(nil).varint(11, 99))).
		bytes(6, message(nil).bytes(1, clock(6, uint64(p.Begin))).bytes(1, clock(64, 0).varint(3, 1)).varint(2, 6)))
	w.track(99, "", message(nil).bytes(3, message(nil).varint(1, uint64(p.PID)).text(2, "python").text(2, "--api-key").text(2, r.Canary).text(6, "python")))
	w.track(1, fmt.Sprintf("THREAD 1 (%d)", p.PID), nil)
}

// WritePerfetto writes one rank of a run as rocprofv3 does with --output-format pftrace and
// --agent-index type-relative.
func (r *ROCm) WritePerfetto(path string, rank int) error {
	w, p := &perfettoTrace{}, r.Ranks[rank]
	w.begin(r, p)
	times := func(start, end int64, kind, operation, correlation int) []any {
		return []any{"begin_ns", start, "end_ns", end, "delta_ns", end - start, "tid", int64(p.PID), "kind", kind, "operation", operation, "corr_id", int64(correlation + 1)}
	}
	for i, c := range p.Calls {
		w.slice(1, "hip_api", c.Name, c.Start, c.End, nil, append(times(c.Start, c.End, 1, 5, i), "ancestor_id", int64(0), "stream_ID", int64(0))...)
	}
	for i, x := range p.Ranges {
		w.slice(1, "marker_api", x.Text, x.Start, x.End, nil, append(times(x.Start, x.End, 2, 1, len(p.Calls)+i), "ancestor_id", int64(0))...)
	}
	stream := func(n int) uint64 { return uint64(1000 + n) }
	for n := 1; n <= 2; n++ {
		w.track(stream(n), fmt.Sprintf(`STREAM [" %d "] `, n), nil)
	}
	gpu := fmt.Sprint("GPU-", rank)
	for _, c := range p.Copies {
		name, from, to := "MEMORY_COPY_HOST_TO_DEVICE", "CPU-0", gpu
		if c.Back {
			name, from, to = "MEMORY_COPY_DEVICE_TO_HOST", gpu, "CPU-0"
		}
		w.slice(stream(c.Stream), "memory_copy", name, c.Start, c.End, nil, append(times(c.Start, c.End, 3, 1, c.Call),
			"src_agent", from, "dst_agent", to, "copy_bytes", c.Bytes, "stream_ID", int64(c.Stream))...)
	}
	kernels := slices.Clone(p.Kernels)
	slices.SortStableFunc(kernels, func(a, b Kernel) int { return cmp.Compare(a.Start, b.Start) })
	for _, k := range kernels {
		counters := message(nil).bytes(4, message(nil).text(10, "SQ_WAVES").fixed(5, math.Float64bits(k.Waves)))
		w.slice(stream(k.Stream), "kernel_dispatch", k.Name, k.Start, k.End, counters, append(times(k.Start, k.End, 11, 2, k.Call), "agent", gpu, "agent_type", "GPU",
			"queue", int64(0), "kernel_id", int64(7), "VGPR_Count", int64(64), "workgroup_size", int64(256), "grid_size", int64(256*k.Blocks), "stream_ID", int64(k.Stream))...)
	}
	w.track(77, fmt.Sprintf("COPY BYTES to GPU [%d] (GPU)", rank), message(nil).bytes(8, message(nil).varint(3, 3).varint(4, 1024)))
	w.event(p.End, message(nil).varint(9, 4).varint(11, 77).varint(30, 12))
	w.packet(message(nil).varint(10, 1).bytes(35, message(nil).bytes(1, message(nil).varint(1, 1<<20))))
	return os.WriteFile(path, w.file, 0o644)
}
