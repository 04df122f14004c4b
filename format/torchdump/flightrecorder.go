package torchdump

import (
	"bytes"
	"errors"
	"io"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// FlightRecorder reads what PyTorch's flight recorder dumps when a collective times
// out: the collectives that a rank entered last, as a pickle or as JSON, one file a rank
// (nccl_trace_rank_3, _dump_3).
//
// # What is odd
//
//   - The rank is in the name of the file alone. Where the name has none, it is the one rank
//     that all groups of the process have in common.
//   - A dump of a real hang often has no collective that ended: then pg_status alone tells
//     which the last one was.
//   - pg_status is keyed by pg_id, pg_config by the name of the group. Only entries tell which
//     is which, and a process that stands still before a collective has none.
//   - ranks of pg_config is text: "[0, 1]".
//   - time_discovered_started_ns and time_discovered_completed_ns are when a thread looked.
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
	case isPickle(head):
		return has("pg_config") || has("profiling_name") || has("collective_seq_id")
	case len(head) > 0 && (head[0] == '{' || head[0] == '['):
		// PyTorch's profiler has a pg_config, too.
		if has(`esourceSpans"`) || has(`resource_spans"`) { // whatever else they quote
			return false
		}
		return has(`"collective_seq_id"`) || has(`"pg_config"`) && (has(`"pg_status"`) || has(`"entries"`)) && !has(`"traceEvents"`)
	}
	return false
}

func isPickle(head []byte) bool { return len(head) > 1 && head[0] == 0x80 && head[1] <= 5 }

// indexRecorder reads a dump.
func indexRecorder(in *format.Input, opt *format.Options) (*format.Source, error) {
	r, err := in.Open()
	if err != nil {
		return nil, err
	}
	d := &recorderReader{set: opt.Flight, dump: &recorder.FlightDump{File: in.Name, Rank: rankOf(in.Name)}, symbols: trace.NewSymbolCache(opt.Syms)}
	err = errors.Join(d.read(r), r.Close())
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
	var head [2]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil {
		return err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), r)
	if isPickle(head[:]) {
		return d.readPickle(all)
	}
	return d.readJSON(all)
}
