package parse

import (
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// A RowID identifies a row.
type RowID struct {
	Lane           Lane
	Part, PID, TID string
	extra          string // distinguishes counters and async events of one process
	// global means that extra is unique in the file: part and pid are those of the first event then.
	global bool
	name   string // of the row, if that is not in the metadata; not part of the identity
}

// Key returns the identity.
func (r *RowID) Key() RowID {
	k := *r
	k.name = ""
	if k.global {
		k.Part, k.PID = "", ""
	}
	return k
}

// A RowName is a metadata event about a row, or about all rows of a process.
type RowName struct {
	What           string // "process_name", ...
	Part, PID, TID string
	text           string
	number         int64
	Own            Identity
}

// A rowEntry is a known row. Each batch numbers its own rows.
type rowEntry struct {
	id    *RowID
	batch int   // the last batch with it
	index int32 // in that batch
}

// A rowIndex finds the rows of events.
type rowIndex struct {
	written map[string]*writtenRow // by lane, pid and tid
	ids     map[RowID]*rowEntry
	recent  [laneAsync][2]*writtenRow // by lane: consecutive events often share a row
	batch   int
	scratch []byte
}

// A writtenRow is a row by its pid and tid as written in the file.
type writtenRow struct {
	pid, tid string
	entry    *rowEntry
}

// find returns the batch's number of the row on a lane with the given pid and tid, as written; nil means
// missing.
func (x *rowIndex) find(out *Batch, l Lane, pid, tid []byte) int32 {
	recent := &x.recent[l]
	r := recent[0]
	if r == nil || string(tid) != r.tid || string(pid) != r.pid {
		if r = recent[1]; r == nil || string(tid) != r.tid || string(pid) != r.pid {
			r = x.lookup(l, pid, tid)
		}
		recent[0], recent[1] = r, recent[0]
	}
	return x.use(out, r.entry)
}

func (x *rowIndex) lookup(l Lane, pid, tid []byte) *writtenRow {
	x.scratch = append(append(append(append(x.scratch[:0], byte(l)), pid...), 0), tid...)
	r := x.written[string(x.scratch)]
	if r == nil {
		id := &RowID{Lane: l}
		id.Part, id.PID, id.TID = identify(pid, tid)
		r = &writtenRow{string(pid), string(tid), x.entry(id)}
		x.written[string(x.scratch)] = r
	}
	return r
}

// identify parses a pid and a tid. A missing tid is the pid, as in Perfetto: the events belong to the process.
func identify(pid, tid []byte) (part, p, t string) {
	part, p = splitPart(unquote(pid))
	if tid == nil {
		return part, p, p
	}
	return part, p, unquote(tid)
}

// entry returns the entry of a row.
func (x *rowIndex) entry(id *RowID) *rowEntry {
	key := id.Key()
	return order.Memo(x.ids, key, func() *rowEntry { return &rowEntry{id: id, batch: -1} })
}

// use returns the number of a row in the batch.
func (x *rowIndex) use(out *Batch, e *rowEntry) int32 {
	if e.batch != x.batch {
		e.batch = x.batch
		e.index = int32(len(out.Rows))
		out.Rows = append(out.Rows, e.id)
	}
	return e.index
}

// unquote returns the text of a pid or tid: the content of a string, the digits of a number, and 0 if it is
// missing.
func unquote(raw []byte) string {
	switch {
	case len(raw) == 0:
		return "0"
	case raw[0] != '"':
		if n, ok := jsonscan.Int(raw); ok {
			return strconv.FormatInt(n, 10) // 7.0 and 7 are the same
		}
		return string(raw)
	}
	return string(jsonscan.Unescape(nil, raw[1:len(raw)-1]))
}

// splitPart splits a pid written by SGLang's profile_merger.py, "[TP00-DP01] 1251", into the rank and the
// original pid.
func splitPart(pid string) (part, rest string) {
	if !strings.HasPrefix(pid, "[") {
		return "", pid
	}
	part, rest, ok := strings.Cut(pid[1:], "] ")
	if !ok {
		return "", pid
	}
	return part, rest
}

// OfProfiler reports whether the row is about the profiler itself, not about a process.
func (r *RowID) OfProfiler() bool { return otherRows[r.PID] }

// Row returns the row without names from the metadata.
func (r *RowID) Row() profile.Row {
	row := profile.Row{Part: r.Part, PIDText: r.PID, TIDText: r.TID, Name: r.name}
	row.PID, _ = jsonscan.Int([]byte(r.PID))
	row.TID, _ = jsonscan.Int([]byte(r.TID))
	// Before 2022, streams had names and not numbers.
	if n, ok := strings.CutPrefix(r.TID, "stream "); ok {
		if row.TID, ok = jsonscan.Int([]byte(strings.TrimSpace(n))); ok {
			row.Kind = profile.RowStream
		}
	}
	switch {
	case r.Lane == LaneStream:
		row.Kind = profile.RowStream
	case r.Lane == laneAsync:
		row.Kind = profile.RowAsync
	case r.Lane == laneCounter:
		row.Kind = profile.RowCounter
	case r.OfProfiler():
		row.Kind = profile.RowOther
	}
	return row
}

// A Where is the target of metadata events: a process if tid is "", else a thread of it or a stream.
type Where struct{ Part, PID, TID string }

// Where returns the target of metadata events about the row.
func (r *RowID) Where() Where { return Where{r.Part, r.PID, r.TID} }

// Apply sets the field that the metadata is about; an empty value changes nothing.
func (n *RowName) Apply(r *profile.Row) {
	switch n.What {
	case "process_name":
		if n.text != "" {
			r.Process = n.text
		}
	case "process_labels":
		if n.text != "" {
			r.Labels = n.text
		}
	case "process_sort_index":
		r.ProcessSort = n.number
	case "thread_name":
		if n.text != "" {
			r.Name = n.text
		}
	case "thread_sort_index":
		r.Sort = n.number
	}
}

// An Identity is the true identity of a process or a thread, as told by our writer.
type Identity struct {
	Part, Label string // of a process
	PID, TID    string // of a thread
}

// identity reads the identity from the metadata event that names a process or a thread.
func (p *parser) identity() Identity {
	host, rank := p.textArg(argHost), p.textArg(argRank)
	between := ""
	if host != "" && rank != "" {
		between = "/"
	}
	return Identity{Part: p.masked(p.textArg(argPart)), Label: host + between + rank, PID: p.textArg(argPID), TID: p.textArg(argTID)}
}
