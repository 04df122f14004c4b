package flightrecorder

import (
	"bytes"
	"errors"
	"io"

	"github.com/sgtrace/sgtrace/flight"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is the dumps of PyTorch's flight recorder.
var Format = &format.Format{
	Name:  "PyTorch flight recorder",
	Noun:  "flight recorder dump",
	Doc:   "collectives in flight, as PyTorch dumps them when one times out (nccl_trace_rank_*)",
	For:   "'sgtrace report'",
	Sniff: func(h format.Head) bool { return sniff(h.Bytes) },
	Index: index,
	Aside: true,
}

func sniff(head []byte) bool {
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

// index reads a dump.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	r, err := in.Open()
	if err != nil {
		return nil, err
	}
	d := &reader{set: opt.Flight, dump: &flight.Dump{File: in.Name, Rank: rankOf(in.Name)}, symbols: trace.NewSymbolCache(opt.Syms)}
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
func (d *reader) read(r io.Reader) error {
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
