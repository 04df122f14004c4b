package torchdump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/pickle"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// FlightRecorder reads what PyTorch's flight recorder dumps when a collective times
// out: the collectives that a rank entered last, as a pickle or as JSON, one file a rank
// (nccl_trace_rank_3, _dump_3).
//
// # What is odd
//
//   - The rank is only in the name of the file. If the name has none, it is the one rank
//     that all groups of the process have in common.
//   - A dump of a real hang often has no collective that ended: then only pg_status has
//     the last one.
//   - pg_status is keyed by pg_id, pg_config by the name of the group. Only entries connect
//     the two, and a process that hangs before its first collective has none.
//   - ranks of pg_config is text: "[0, 1]".
//   - time_discovered_started_ns and time_discovered_completed_ns are the times at which a thread looked.
//   - Version 1 has seq_id, or id, for collective_seq_id, and may be the bare list of entries.
//   - Pickles name no classes. One that does is refused.
var FlightRecorder = &format.Format{
	Name:  "PyTorch flight recorder",
	Noun:  "flight recorder dump",
	Doc:   "collectives in flight, as PyTorch dumps them when one times out (nccl_trace_rank_*)",
	For:   "'sgtrace report'",
	Sniff: isRecorderDump,
	Index: indexRecorder,
	Aside: true,
}

func isRecorderDump(head []byte) bool {
	has := func(text string) bool { return bytes.Contains(head, []byte(text)) }
	switch {
	case pickle.Begins(head):
		return has("pg_config") || has("profiling_name") || has("collective_seq_id")
	case len(head) > 0 && (head[0] == '{' || head[0] == '['):
		// PyTorch's profiler also writes pg_config.
		if has(`esourceSpans"`) || has(`resource_spans"`) { // OTLP, whatever else it quotes
			return false
		}
		return has(`"collective_seq_id"`) || has(`"pg_config"`) && (has(`"pg_status"`) || has(`"entries"`)) && !has(`"traceEvents"`)
	}
	return false
}

// indexRecorder reads a dump.
func indexRecorder(in *format.Input, opt *format.Options) (*format.Source, error) {
	d := &recorderReader{set: opt.Flight, dump: &recorder.FlightDump{File: in.Name, Rank: rankOf(in.Name)}, symbols: trace.NewSymbolCache(opt.Syms),
		groups: map[string]int32{}, status: map[int64]groupStatus{}, shapes: map[string]recorder.Shape{}, stacks: map[string]int32{}, frames: map[any]recorder.Frame{}}
	err := in.Read(d.read)
	if err != nil {
		if len(d.dump.Ops) == 0 && len(d.groups) == 0 {
			return nil, err
		}
		d.dump.Lost = true
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	d.finish()
	opt.Flight.Add(d.dump)
	return &format.Source{}, nil
}

// read reads a dump of either form.
func (d *recorderReader) read(r io.Reader) error {
	all := bufio.NewReader(r)
	head, err := all.Peek(2)
	switch {
	case err != nil:
		return err
	case pickle.Begins(head):
		return d.readPickle(all)
	}
	return d.readJSON(all)
}

// A recorderJSON is an entry in the JSON form.
type recorderJSON struct {
	RecordID  int64    `json:"record_id"`
	ID        *int64   `json:"id"`
	PGID      *int64   `json:"pg_id"`
	Group     []string `json:"process_group"`
	Seq       *int64   `json:"collective_seq_id"`
	OldSeq    *int64   `json:"seq_id"`
	P2P       *int64   `json:"p2p_seq_id"`
	Name      string   `json:"profiling_name"`
	State     string
	Created   int64     `json:"time_created_ns"`
	Completed *int64    `json:"time_discovered_completed_ns"`
	Retired   bool      `json:"retired"`
	In        [][]int64 `json:"input_sizes"`
	Out       [][]int64 `json:"output_sizes"`
	InT       []string  `json:"input_dtypes"`
	OutT      []string  `json:"output_dtypes"`
	Frames    []struct {
		Name, Filename string
		Line           int32
	}
}

// readJSON reads a dump in the form of _dump_nccl_trace_json.
func (d *recorderReader) readJSON(r io.Reader) error {
	j := json.NewDecoder(r)
	_, _, err := jsonscan.Each(j, func(key string) error { return d.jsonMember(j, key) }, func() error { return d.jsonEntry(j) })
	return err
}

// jsonMember reads a top-level field.
func (d *recorderReader) jsonMember(j *json.Decoder, key string) error {
	switch key {
	case "entries":
		_, _, err := jsonscan.Each(j, nil, func() error { return d.jsonEntry(j) })
		return err
	case "version":
		return j.Decode(&d.dump.Version)
	case "nccl_version", "comm_lib_version":
		return j.Decode(&d.dump.NCCL)
	case "pg_config":
		var groups map[string]struct{ Desc, Ranks string }
		if err := j.Decode(&groups); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			d.config(name, groups[name].Desc, groups[name].Ranks)
		}
		return nil
	case "pg_status":
		var groups map[string]struct {
			Enqueued  int64 `json:"last_enqueued_collective"`
			Completed int64 `json:"last_completed_collective"`
		}
		if err := j.Decode(&groups); err != nil {
			return err
		}
		for id, s := range groups {
			d.addProgress(id, s.Enqueued, s.Completed)
		}
		return nil
	}
	_, _, err := jsonscan.Next(j)
	return err
}

// jsonEntry adds an entry.
func (d *recorderReader) jsonEntry(j *json.Decoder) error {
	var x recorderJSON
	if err := j.Decode(&x); err != nil {
		return err
	}
	e := recorderEntry{name: x.Name, state: x.State, pgID: first(x.PGID), completedNs: max(0, first(x.Completed))}
	if len(x.Group) == 2 {
		e.group, e.desc = x.Group[0], x.Group[1]
	}
	e.op = recorder.Op{Seq: first(x.Seq, x.OldSeq, x.ID), P2P: first(x.P2P), Record: x.RecordID, Created: trace.Time(x.Created),
		Retired: x.Retired, In: d.set.Shape(x.In), Out: d.set.Shape(x.Out), InT: d.types(len(x.InT), func(i int) string { return x.InT[i] }), OutT: d.types(len(x.OutT), func(i int) string { return x.OutT[i] })}
	if x.ID != nil {
		e.op.Record = *x.ID
	}
	var frames []recorder.Frame
	var key []byte
	for _, f := range x.Frames {
		frame := recorder.Frame{Name: d.symbols.Intern([]byte(f.Name)), File: d.symbols.Intern([]byte(f.Filename)), Line: f.Line}
		frames, key = append(frames, frame), appendFrame(key, frame)
	}
	e.op.Stack = d.stack(key, frames)
	d.add(&e)
	return nil
}

// first returns the first number that is set; recorder.Unknown if there is none.
func first(of ...*int64) int64 {
	for _, n := range of {
		if n != nil {
			return *n
		}
	}
	return recorder.Unknown
}
