package requestlog

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// StatsBegin precedes what Stats reads.
var StatsBegin = []byte("ReqTimeStats(")

// Stats reads the text after "ReqTimeStats(": a scheduler's report of a request that it has finished. It returns the role
// of the server, as far as known. All times are durations except that of the entry, which is Unix time.
//
//	rid=.., bootstrap_room=.., input_len=.., cached_input_len=.., output_len=.., attempts=1, type=unified): queue_duration=1.23ms, ..
func (r *Reader) Stats(b []byte, of Line) (role spantable.Role) {
	head, tail, ok := bytes.Cut(b, []byte("): "))
	if !ok {
		r.strange()
		return role
	}
	row := spantable.NewRequestRecord()
	row.Who, row.Line, row.Server = spantable.Scheduler, of.N, r.f.Set.Places[of.Place].Server
	row.DP = r.f.Set.Places[of.Place].Rank.DP
	assignments(head, func(key, value []byte) {
		switch string(key) {
		case "rid":
			row.ID = r.rows.Text(bytes.Trim(value, `'"`))
		case "bootstrap_room":
			if v := bytes.Trim(value, `'"`); !bytes.Equal(v, []byte("None")) {
				row.Room = r.rows.Text(v)
			}
		case "input_len":
			row.Prompt = count(value)
		case "cached_input_len":
			row.Cached = count(value)
		case "output_len":
			row.Completion = count(value)
		case "type":
			row.Role = spantable.RoleOf(string(value))
		}
	})
	var d durations
	var entry trace.Time
	assignments(tail, func(key, value []byte) {
		if string(key) == "entry_time" {
			entry = unixSeconds(value)
			return
		}
		d.set(string(key), value)
	})
	if entry == 0 {
		r.strange()
		return role
	}
	d.place(&row, entry)
	if zone := &r.f.Source().Zone; zone.Local {
		zone.Beside(of.At, row.End)
	}
	if !r.rows.Add(row) {
		r.strange()
	}
	return row.Role
}

// assignments yields the pairs of a list "a=1, b=2".
func assignments(b []byte, yield func(key, value []byte)) {
	for len(b) > 0 {
		piece := b
		if i := bytes.Index(b, []byte(", ")); i >= 0 {
			piece, b = b[:i], b[i+2:]
		} else {
			b = nil
		}
		if i := bytes.IndexByte(piece, '='); i > 0 {
			yield(piece[:i], bytes.TrimSpace(piece[i+1:]))
		}
	}
}

// durations are a scheduler's durations of a request, in ns; 0 is unknown, as in SGLang.
type durations struct {
	bootstrap, alloc, queue, initial, transfer, forward int64
	speed, total                                        float64 // of a transfer, in GB/s and MB
}

func (d *durations) set(key string, value []byte) {
	switch amount, unit, _ := bytes.Cut(value, []byte(" ")); {
	case key == "transfer_speed" && string(unit) == "GB/s":
		d.speed, _ = logline.Decimal(amount, 1)
	case key == "transfer_total" && string(unit) == "MB":
		d.total, _ = logline.Decimal(amount, 1)
	}
	v, ok := logline.Decimal(bytes.TrimSuffix(value, []byte("ms")), 1)
	if !ok || v < 0 || v > 1e9 {
		return
	}
	ns := int64(v * 1e6)
	switch key {
	case "bootstrap_duration", "bootstrap_queue_duration":
		d.bootstrap = ns
	case "alloc_wait_duration", "prealloc_queue_duration":
		d.alloc = ns
	case "transfer_duration":
		d.transfer = ns
	case "queue_duration":
		d.queue = ns
	case "initial_prefill_elapsed":
		d.initial = ns
	case "forward_duration":
		d.forward = ns
	}
}

// rounded is ten times the rounding error of a speed with two decimals, in GB/s. A prefill that exceeds the resulting error
// of the transfer time is known to a tenth.
const rounded = 10 * 0.005

// place puts the durations one after the other, from the time at which the scheduler took the request.
func (d *durations) place(r *spantable.RequestRecord, entry trace.Time) {
	at := entry
	put := func(phase int, ns int64) {
		r.Phases[phase] = spantable.Phase{From: at, To: at + trace.Time(ns)}
		at += trace.Time(ns)
	}
	if r.Role == spantable.PrefillRole || r.Role == spantable.DecodeRole {
		if d.bootstrap+d.alloc > 0 {
			put(spantable.Bootstrap, d.bootstrap+d.alloc)
		}
		if r.Role == spantable.DecodeRole && d.transfer > 0 {
			put(spantable.Transfer, d.transfer)
		}
	}
	put(spantable.Queue, d.queue)
	switch {
	case d.forward == 0:
	case r.Role == spantable.PrefillRole:
		sent := int64(0) // MB divided by GB/s are ms
		if d.speed > 0 {
			sent = min(d.forward, int64(d.total/d.speed*1e6))
		}
		if prefill := d.forward - sent; prefill >= int64(rounded/d.speed*float64(sent)) {
			put(spantable.Prefill, prefill)
		} else { // the rest of a slow transfer is within the rounding error of its speed
			at += trace.Time(prefill)
		}
		if sent > 0 {
			put(spantable.Transfer, sent)
		}
	case r.Role == spantable.DecodeRole:
		put(spantable.Decode, d.forward)
	case d.initial > 0 && d.initial <= d.forward: // the time of the first token
		put(spantable.Prefill, d.initial)
		r.TTFT = int64(at - entry)
		put(spantable.Decode, d.forward-d.initial)
	default: // the division is unknown
		at += trace.Time(d.forward)
	}
	r.Start, r.End = entry, at
}

// count parses a number of tokens.
func count(b []byte) int64 {
	if v, ok := logline.Decimal(b, 1); ok && v >= 0 && v < 1e12 {
		return int64(v)
	}
	return spantable.Unknown
}

// unixSeconds parses seconds since 1970, without loss; 0 is none.
func unixSeconds(b []byte) trace.Time {
	whole, _, _ := bytes.Cut(b, []byte("."))
	s, ok := logline.Digits(whole, len(whole))
	if !ok || len(whole) < 9 || len(whole) > 10 {
		return 0
	}
	ns, _, _ := logline.Fraction(b[len(whole):])
	return trace.Time(s)*1e9 + ns
}
