package torchdump

import (
	"io"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/pickle"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// readPickle reads a dump written by torch::jit::Pickler.
func (d *recorderReader) readPickle(r io.Reader) error {
	const fewest = 8 // of an entry; frames have three
	root, err := pickle.Read(r, pickle.Options{
		Known: func(string) bool { return false },
		Take: func(dict pickle.Value) bool {
			if dict.Len() < fewest || dict.Get("profiling_name").Kind == pickle.Missing {
				return false
			}
			d.entry(dict)
			return true
		},
	})
	items := root.Items()
	if root.Kind == pickle.Tuple && len(items) > 0 && items[0].Kind == pickle.Dict { // it was cut off
		items = items[1:]
	}
	for i := 0; root.Kind != pickle.List && i+1 < len(items); i += 2 {
		d.member(items[i].Text(), items[i+1])
	}
	return err
}

// member reads a top-level field.
func (d *recorderReader) member(key string, v pickle.Value) {
	each := func(do func(name string, of pickle.Value)) {
		items := v.Items()
		for i := 0; v.Kind == pickle.Dict && i+1 < len(items); i += 2 {
			do(items[i].Text(), items[i+1])
		}
	}
	switch key {
	case "version":
		d.dump.Version = v.Text()
	case "nccl_version", "comm_lib_version":
		d.dump.NCCL = v.Text()
	case "pg_config":
		each(func(name string, of pickle.Value) { d.config(name, of.Get("desc").Text(), of.Get("ranks").Text()) })
	case "pg_status":
		each(func(id string, of pickle.Value) {
			d.addProgress(id, of.Get("last_enqueued_collective").Int64(recorder.Unknown), of.Get("last_completed_collective").Int64(recorder.Unknown))
		})
	}
}

// addProgress sets the progress of a group.
func (d *recorderReader) addProgress(id string, enqueued, completed int64) {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n >= 0 {
		d.status[n] = groupStatus{enqueued, completed}
	}
}

// entry adds an entry.
func (d *recorderReader) entry(dict pickle.Value) {
	e := recorderEntry{pgID: recorder.Unknown}
	e.op.Seq, e.op.P2P, e.op.Stack = recorder.Unknown, recorder.Unknown, recorder.Unknown
	items := dict.Items()
	var frames pickle.Value
	for i := 0; i+1 < len(items); i += 2 {
		v := items[i+1]
		switch items[i].Text() {
		case "record_id":
			e.op.Record = v.Int64(0)
		case "id":
			e.op.Record = v.Int64(0)
			if e.op.Seq < 0 {
				e.op.Seq = v.Int64(recorder.Unknown)
			}
		case "collective_seq_id", "seq_id":
			e.op.Seq = v.Int64(recorder.Unknown)
		case "p2p_seq_id":
			e.op.P2P = v.Int64(recorder.Unknown)
		case "pg_id":
			e.pgID = v.Int64(recorder.Unknown)
		case "process_group":
			e.group, e.desc = v.At(0).Text(), v.At(1).Text()
		case "pg_name":
			e.group = v.Text()
		case "profiling_name":
			e.name = v.Text()
		case "state":
			e.state = v.Text()
		case "time_created_ns":
			e.op.Created = trace.Time(v.Int64(0))
		case "time_discovered_completed_ns":
			e.completedNs = v.Int64(0)
		case "retired":
			e.op.Retired = v.IsTrue()
		case "input_sizes":
			e.op.In = d.shape(v)
		case "output_sizes":
			e.op.Out = d.shape(v)
		case "input_dtypes":
			e.op.InT = d.types(v.Len(), func(i int) string { return v.At(i).Text() })
		case "output_dtypes":
			e.op.OutT = d.types(v.Len(), func(i int) string { return v.At(i).Text() })
		case "frames":
			frames = v
		}
	}
	d.add(&e)
	switch op := &d.dump.Ops[len(d.dump.Ops)-1]; {
	case op.Pending():
		op.Stack = d.framesOf(frames)
	case d.ended.Kind == pickle.Missing || op.Record >= d.endedRecord: // only the last of those that ended is of interest
		d.ended, d.endedRecord = frames, op.Record
	}
}

// shape returns the shape for a list of lists of numbers.
func (d *recorderReader) shape(v pickle.Value) recorder.Shape {
	var key [64]byte
	text := key[:0]
	for _, dims := range v.Items() {
		for _, n := range dims.Items() {
			text = strconv.AppendInt(text, n.Int64(0), 10)
			text = append(text, ',')
		}
		text = append(text, ';')
	}
	if s, ok := d.shapes[string(text)]; ok {
		return s
	}
	sizes := make([][]int64, v.Len())
	for i, dims := range v.Items() {
		for _, n := range dims.Items() {
			sizes[i] = append(sizes[i], n.Int64(0))
		}
	}
	s := d.set.Shape(sizes)
	d.shapes[string(text)] = s
	return s
}

// types returns the types of n tensors, as one word if they are equal.
func (d *recorderReader) types(n int, at func(i int) string) trace.Sym {
	var key [64]byte
	text := key[:0]
	for i := range n {
		if i > 0 && at(i) == at(0) {
			continue
		}
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, at(i)...)
	}
	return d.symbols.Intern(text)
}

// framesOf returns the index of a stack. Frames are shared by entries.
func (d *recorderReader) framesOf(v pickle.Value) int32 {
	frames, key := d.ofStack[:0], d.keyOfStack[:0]
	for _, x := range v.Items() {
		f := order.Memo(d.frames, x.Key(), func() recorder.Frame {
			return recorder.Frame{Name: d.symbols.Intern([]byte(x.Get("name").Text())), File: d.symbols.Intern([]byte(x.Get("filename").Text())), Line: int32(x.Get("line").Int64(0))}
		})
		frames = append(frames, f)
		key = appendFrame(key, f)
	}
	d.ofStack, d.keyOfStack = frames, key
	return d.stack(key, frames)
}

// appendFrame appends a frame's identity to a key.
func appendFrame(key []byte, f recorder.Frame) []byte {
	for _, n := range [...]uint32{uint32(f.Name), uint32(f.File), uint32(f.Line)} {
		key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return key
}
