package torchdump

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/pickle"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// snapshotReader reads one snapshot. Its dicts come from the inside out: blocks before their segment, and the entries of
// one device after those of another.
type snapshotReader struct {
	syms      *trace.Symbols
	blocks    []recorder.Block // of the next segment
	devices   map[int32]*recorder.Device
	entries   []recorder.Entry // of all devices
	places    map[snapshotFrame]trace.Sym
	native    map[trace.Sym]bool // places in C++ alone
	libraries map[string]bool    // by file
}

// readSnapshot reads a pickle. On an error, it also returns what it read so far.
func readSnapshot(in *format.Input, syms *trace.Symbols) (*recorder.Snapshot, error) {
	r := &snapshotReader{syms: syms, devices: map[int32]*recorder.Device{}, places: map[snapshotFrame]trace.Sym{}, native: map[trace.Sym]bool{}, libraries: map[string]bool{}}
	root, err := pickle.ReadScanned(in.Open, in.Path != "", pickle.Options{Take: r.take, Known: func(string) bool { return false }})
	return r.finish(in.Name, root), err
}

// take reads a block, a segment, or an entry.
func (r *snapshotReader) take(d pickle.Value) bool {
	switch {
	case d.Get("state").Kind == pickle.Text:
		r.block(d)
	case d.Get("total_size").Kind == pickle.Int:
		r.segment(d)
	case d.Get("action").Kind == pickle.Text:
		r.entry(d)
	default:
		return false
	}
	return true
}

func (r *snapshotReader) block(d pickle.Value) {
	b := recorder.Block{Size: d.Get("size").Int64(0)}
	b.Address = d.Get("address").Uint64()
	b.Requested = d.Get("requested_size").Int64(-1)
	frames := d.Get("frames")
	if history := d.Get("history"); history.Len() > 0 {
		if b.Requested < 0 {
			b.Requested = history.At(0).Get("real_size").Int64(-1)
		}
		if frames.Len() == 0 {
			frames = history.At(0).Get("frames")
		}
	}
	if b.Requested < 0 {
		b.Requested = b.Size
	}
	switch d.Get("state").Text() {
	case "active_allocated":
		b.State = recorder.Active
	case "active_pending_free", "active_awaiting_free":
		b.State = recorder.Pending
	}
	b.Where = r.innermost(frames)
	r.blocks = memory.Append(r.blocks, b)
}

func (r *snapshotReader) segment(d pickle.Value) {
	number := int32(d.Get("device").Int64(0))
	pool := d.Get("segment_pool_id")
	on := r.device(number)
	on.Segments = append(on.Segments, recorder.Segment{Size: d.Get("total_size").Int64(0), Blocks: r.blocks,
		Pool: pool.At(0).Int64(0) != 0 || pool.At(1).Int64(0) != 0})
	r.blocks = nil
}

func (r *snapshotReader) device(number int32) *recorder.Device {
	return order.Memo(r.devices, number, func() *recorder.Device { return &recorder.Device{Number: number} })
}

func (r *snapshotReader) entry(d pickle.Value) {
	e := recorder.Entry{Action: recorder.Actions[d.Get("action").Text()], Size: d.Get("size").Int64(0)}
	if us := d.Get("time_us").Int64(0); us > 0 && us < 1<<53 {
		e.Time = trace.Time(us * 1000)
	}
	e.Address = d.Get("addr").Uint64()
	if e.Action == recorder.OutOfMemory {
		e.Address = d.Get("device_free").Uint64()
	}
	e.Where = r.innermost(d.Get("frames"))
	r.entries = memory.Append(r.entries, e)
}

// finish assigns entries to devices, by the number of dicts taken from each device's list.
func (r *snapshotReader) finish(file string, root pickle.Value) *recorder.Snapshot {
	rest := r.entries
	for i, list := range root.Get("device_traces").Items() {
		n := min(list.Taken(), len(rest))
		if n > 0 {
			r.device(int32(i)).Entries = rest[:n:n]
		}
		rest = rest[n:]
	}
	if len(rest) > 0 && root.Kind == pickle.Missing { // cut off: the first device is most likely
		r.device(0).Entries = append(r.device(0).Entries, rest...)
	}
	x := &recorder.Snapshot{File: file, Native: r.native}
	for number := int32(0); len(x.Devices) < len(r.devices); number++ {
		if d := r.devices[number]; d != nil {
			x.Devices = append(x.Devices, d)
		} else if number > maxDevices {
			break
		}
	}
	return x
}

// maxDevices is the largest number of devices of a host.
const maxDevices = 1 << 12

// A snapshotFrame is a function at a source position.
type snapshotFrame struct {
	name, file string
	line       int64
}

// innermost returns the innermost function of a stack outside of PyTorch and C++, or the innermost one in Python if there
// is none. For C++ alone, it returns the node of the backward pass, or the outermost operator; 0 is no stack.
func (r *snapshotReader) innermost(frames pickle.Value) trace.Sym {
	var at snapshotFrame
	for i := range frames.Len() {
		f := frames.At(i)
		here := snapshotFrame{f.Get("name").Text(), f.Get("filename").Text(), f.Get("line").Int64(0)}
		library := order.Memo(r.libraries, here.file, func() bool { return isLibrary(here.file) })
		if !library && !strings.Contains(here.name, "::") {
			at = here
			break
		}
		// Otherwise, the innermost one in Python is the most informative.
		if i == 0 || !strings.HasSuffix(at.file, ".py") && strings.HasSuffix(here.file, ".py") {
			at = here
		}
	}
	native := at.name != "" && r.libraries[at.file] && !strings.HasSuffix(at.file, ".py") && !strings.HasPrefix(at.file, "<")
	if native {
		at = nativeFrame(frames)
	}
	sym, known := r.places[at]
	if !known && at != (snapshotFrame{}) {
		sym = r.syms.Intern(at.String())
		r.places[at] = sym
		if native {
			r.native[sym] = true
		}
	}
	return sym
}

// nativeFrame summarizes a stack of C++ alone: the node of a backward pass, else its outermost operator, else its outermost
// function.
func nativeFrame(frames pickle.Value) (at snapshotFrame) {
	for i := range frames.Len() {
		name := frames.At(i).Get("name").Text()
		if node, ok := between(name, "torch::autograd::generated::", "::apply("); ok {
			return snapshotFrame{name: node + " (backward pass)"}
		}
		if op, ok := between(name, "at::_ops::", "::call("); ok {
			at.name = "aten::" + op + " (C++)"
		} else if at.name == "" && i == frames.Len()-1 {
			at.name = name
		}
	}
	return at
}

// between returns the text between two other texts.
func between(s, from, to string) (string, bool) {
	_, rest, ok := strings.Cut(s, from)
	text, _, closed := strings.Cut(rest, to)
	return text, ok && closed
}

// isLibrary reports whether a file is part of PyTorch, or of Python.
func isLibrary(file string) bool {
	if file == "" || file == "??" {
		return true
	}
	file = strings.ReplaceAll(file, `\`, "/")
	for _, part := range []string{"/torch/", "/lib/python3", "<frozen", "<string>", "<eval_with_key>"} {
		if strings.Contains(file, part) && !(part == "/lib/python3" && strings.Contains(file, "/site-packages/")) {
			return true
		}
	}
	return slices.Contains([]string{".so", ".cpp", ".cc", ".c", ".h", ".cu", ".o", ".S"}, path.Ext(file))
}

// String returns the name of a function: "forward (cs336_basics/model.py:54)".
func (f snapshotFrame) String() string {
	file := strings.ReplaceAll(f.file, `\`, "/")
	dir, base := path.Split(file)
	if parent := path.Base(dir); dir != "" && parent != "/" && parent != "." {
		base = parent + "/" + base
	}
	if f.line > 0 {
		base += ":" + strconv.FormatInt(f.line, 10)
	}
	if base == "" || base == "??" {
		return f.name
	}
	return f.name + " (" + base + ")"
}
