package torchdump

import (
	"bytes"
	"strconv"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// An inspectorReader reads the records of one log.
type inspectorReader struct {
	opt     *format.Options
	members map[memberKey]*member
	order   []*member // by first appearance
	last    *member

	good, bad       int64 // number of lines
	untimed, queued int64 // number of records
	undated         int64 // of untimed, those for which not even the times of the two writes around them are known
}

// A memberKey identifies one rank of a communicator, in a process.
type memberKey struct {
	host, id string
	pid      int64
	rank     int32
}

// A member is the operations of one rank in a communicator.
type member struct {
	memberKey
	name string // of the communicator; "" is unknown
	size int32  // number of ranks; -1 is unknown
	ops  ops    // in the order in which they ended
	blur int64  // as [profile.Meta.Blur]
}

type ops []op

// An op is a collective, a send, or a receive that ended.
type op struct {
	end      trace.Time // Unix ns; for untimed ones, the time of writing
	micros   int64      // duration
	seq      int64      // among those of its kind; -1 is unknown
	bytes    int64      // in NCCL's count; -1 is unknown
	bus      float64    // GB/s; 0 is unknown
	name     trace.Sym  // "AllReduce"
	peer     int32      // of a send or a receive; -1 is none
	p2p      bool
	timed    bool // whether end is the end, and not the time of writing
	enqueued bool // micros count from the call
}

func newInspectorReader(opt *format.Options) *inspectorReader {
	return &inspectorReader{opt: opt, members: map[memberKey]*member{}}
}

// line reads a record. It ignores an empty line.
func (r *inspectorReader) line(b []byte, _ int64) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return
	}
	if !r.record(b) {
		r.bad++
		return
	}
	r.good++
}

// record reads a record; ok is false if it lacks the rank or the operation.
func (r *inspectorReader) record(b []byte) (ok bool) {
	var head, meta, perf []byte
	x := op{seq: -1, bytes: -1, peer: -1, micros: -1}
	end, err := jsonscan.Members(b, 0, func(key, value []byte) {
		switch string(key) {
		case "header":
			head = value
		case "metadata":
			meta = value
		case "coll_perf":
			perf = value
		case "p2p_perf":
			perf, x.p2p = value, true
		}
	})
	if err != nil || end != len(b) || head == nil || perf == nil {
		return false
	}
	m, written := r.member(head, meta)
	if m == nil || !r.perf(perf, &x) || x.name == 0 || x.micros < 0 {
		return false
	}
	if !x.timed {
		x.end = written
		r.untimed++
	}
	if x.enqueued {
		r.queued++
	}
	if !isTime(x.end) || x.micros > longest {
		return false
	}
	m.ops = memory.Append(m.ops, x)
	return true
}

// longest is a collective that takes a day, in µs.
const longest = 24 * 3600 * 1e6

// isTime reports whether a time lies between 2001 and 2200.
func isTime(t trace.Time) bool { return 1e18 < t && t < 72e17 }

// member returns the rank that a record belongs to, and the time of writing.
func (r *inspectorReader) member(head, meta []byte) (m *member, written trace.Time) {
	key := memberKey{rank: -1}
	size := int32(-1)
	var id, host, name []byte
	members(head, func(k string, v []byte) {
		switch k {
		case "id":
			id = jsonscan.Text(v)
		case "comm_name":
			name = jsonscan.Text(v)
		case "rank":
			key.rank = small(v)
		case "n_ranks":
			size = small(v)
		}
	})
	members(meta, func(k string, v []byte) {
		switch k {
		case "dump_timestamp_us":
			written = micros(v)
		case "hostname":
			host = jsonscan.Text(v)
		case "pid":
			key.pid, _ = jsonscan.Int(v)
		}
	})
	if len(id) == 0 || key.rank < 0 {
		return nil, 0
	}
	if l := r.last; l != nil && l.pid == key.pid && l.rank == key.rank && l.id == string(id) && l.host == string(host) {
		return l, written
	}
	key.id, key.host = string(id), string(host)
	if m = r.members[key]; m == nil {
		m = &member{memberKey: key, size: size}
		if n := string(name); n != "unknown" {
			m.name = n
		}
		r.members[key], r.order = m, append(r.order, m)
	}
	r.last = m
	return m, written
}

// perf reads the measurements; ok is false if they are not an object.
func (r *inspectorReader) perf(b []byte, x *op) (ok bool) {
	var stop trace.Time
	ok = members(b, func(k string, v []byte) {
		switch k {
		case "coll", "p2p":
			if t := jsonscan.Text(v); len(t) < 64 {
				x.name = r.opt.Syms.Intern(string(t))
			}
		case "coll_sn", "p2p_sn":
			if n, whole := jsonscan.Int(v); whole && n >= 0 {
				x.seq = n
			}
		case "p2p_peer":
			x.peer = small(v)
		case "coll_msg_size_bytes", "p2p_msg_size_bytes":
			if n, whole := jsonscan.Int(v); whole && n >= 0 {
				x.bytes = n
			}
		case "coll_exec_time_us", "p2p_exec_time_us":
			if n, whole := jsonscan.Int(v); whole && n >= 0 {
				x.micros = n
			}
		case "coll_timing_source", "p2p_timing_source":
			x.enqueued = string(jsonscan.Text(v)) == "collective_cpu"
		case "coll_busbw_gbs", "p2p_busbw_gbs":
			x.bus, _ = strconv.ParseFloat(string(v), 64) // "nan" is text, and stays unknown
		case "event_trace_ts":
			stop = stopped(v)
		}
	})
	if stop != 0 {
		x.end, x.timed = stop, true
	}
	return ok
}

// stopped returns the time at which the last channel of a kernel ended; 0 is unknown. Unused channels have 0.
func stopped(b []byte) (at trace.Time) {
	members(b, func(k string, v []byte) {
		if k != "kernel_events" {
			return
		}
		for i := 0; i < len(v); i++ { // a list of objects
			if v[i] != '{' {
				continue
			}
			end, err := jsonscan.Members(v, i, func(key, value []byte) {
				if string(key) == "kernel_stop_ts" {
					at = max(at, micros(value))
				}
			})
			if err != nil {
				return
			}
			i = end - 1
		}
	})
	return at
}

// members passes the members of an object; ok is false for anything else.
func members(b []byte, yield func(key string, value []byte)) (ok bool) {
	_, err := jsonscan.Members(b, 0, func(key, value []byte) { yield(string(key), value) })
	return err == nil
}

// small parses a number of ranks; -1 if there is none.
func small(v []byte) int32 {
	n, ok := jsonscan.Int(v)
	if !ok || n < 0 || n > 1<<24 {
		return -1
	}
	return int32(n)
}

// micros parses a time in µs; 0 if there is none.
func micros(v []byte) trace.Time {
	n, ok := jsonscan.Int(v)
	if !ok || n < 0 || n > 1<<52 {
		return 0
	}
	return trace.Time(n * 1000)
}
