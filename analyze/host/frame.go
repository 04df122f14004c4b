package host

import (
	"cmp"
	"encoding/binary"
	"path"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A Kind is the kind of a frame. Frames that begin and end together nest in this order, from the
// outside in.
type Kind uint8

const (
	RangeFrame Kind = iota
	PythonFrame
	OperatorFrame
	StackFrame // the innermost function of the code itself that a call was in
	SystemFrame
	CallFrame
	PageableFrame // a call that launched a copy of pageable memory; [Read] passes it as a CallFrame
	numKinds
)

// A Frame is what a thread did between two instants.
type Frame struct {
	From, To    trace.Time // To is after From: what takes no time takes 1 ns
	Correlation int64      // of a call, see [profile.Event]
	Name        trace.Sym
	Kind        Kind
}

// FrameOf returns the frame that an event is.
func FrameOf(kind Kind, e *profile.Event) Frame {
	return Frame{e.Start, max(e.End, e.Start+1), e.Correlation, e.Name, kind}
}

// A ThreadID identifies a thread of a rank.
type ThreadID struct {
	PID int32
	TID int64
}

// Compare orders threads.
func (t ThreadID) Compare(o ThreadID) int {
	return cmp.Or(cmp.Compare(t.PID, o.PID), cmp.Compare(t.TID, o.TID))
}

// KindsOf returns the kinds of frames in a stream, judging by its first calls, ranges, and frames.
func KindsOf(s profile.Stream) (has RecordedFrames) {
	for range s.Calls {
		has[CallFrame] = true
		break
	}
	for r := range s.Ranges {
		if has[RangeFrame] = isFrame(r); has[RangeFrame] {
			break
		}
	}
	for f := range s.Frames {
		has[KindOf(f.Kind)] = true
		break
	}
	return has
}

// Read passes what threads did in a stream: calls, then closed ranges that nest, then frames. Each
// comes roughly in the order of time.
func Read(s profile.Stream, what func(kind Kind, e *profile.Event, tid int64)) {
	s.Calls(func(c *profile.Call) bool {
		what(CallFrame, &c.Event, c.TID)
		return true
	})
	s.Ranges(func(r *profile.Range) bool {
		if isFrame(r) {
			what(RangeFrame, &r.Event, r.TID)
		}
		return true
	})
	s.Frames(func(f *profile.Frame) bool {
		what(KindOf(f.Kind), &f.Event, f.TID)
		return true
	})
}

// frameKinds are the kinds of the frames that [profile.Stream.Frames] passes.
var frameKinds = [...]Kind{profile.OperatorFrame: OperatorFrame, profile.PythonFrame: PythonFrame, profile.SystemFrame: SystemFrame, profile.RangeFrame: RangeFrame}

// KindOf returns the kind of a frame of a stream.
func KindOf(k profile.FrameKind) Kind { return frameKinds[k] }

// isFrame reports whether a range nests, so that its thread is in it until it is closed.
func isFrame(r *profile.Range) bool { return r.Style == profile.PushPop && !r.Open }

// walks numbers the passes of [Read].
var walks = [...]uint8{CallFrame: 0, PageableFrame: 0, RangeFrame: 1, PythonFrame: 2, OperatorFrame: 2, SystemFrame: 2, StackFrame: 3}

// compareFrames orders frames by their start, the outer one of two first.
func compareFrames(a, b Frame) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To), cmp.Compare(a.Kind, b.Kind))
}

// Frames records the frames of one thread, packed into about a third of their size. The zero value is
// empty.
type Frames struct {
	runs []*run
	// window are the last frames of the last run. They are packed once no earlier frame is likely to
	// come.
	window []Frame
}

// A run is the frames that [Read] passed together.
type run struct {
	packedFrames
	walk uint8
}

// windowSize is how many frames late a frame may come before its whole run has to be sorted: calls and
// ranges are recorded when they end, after those within them.
const windowSize = 256

// Add adds a frame, in the order of [Read]. Stacks of calls come last.
func (t *Frames) Add(f Frame) {
	walk := walks[f.Kind]
	if n := len(t.runs); n == 0 || t.runs[n-1].walk != walk {
		t.pack(0)
		t.runs = append(t.runs, &run{walk: walk})
	}
	if t.window = append(t.window, f); len(t.window) >= 2*windowSize {
		t.pack(windowSize)
	}
}

// pack packs the frames in the window, in order, except for the last keep.
func (t *Frames) pack(keep int) {
	if len(t.window) == 0 {
		return
	}
	sortFrames(t.window)
	n := len(t.window) - keep
	last := t.runs[len(t.runs)-1]
	for i := range t.window[:n] {
		last.add(&t.window[i])
	}
	t.window = slices.Delete(t.window, 0, n)
}

// Join moves the frames of the same thread in another stream here.
func (t *Frames) Join(o *Frames) {
	t.pack(0)
	o.pack(0)
	t.runs = append(t.runs, o.runs...)
	*o = Frames{}
}

// Settle returns all frames as a queue in order, and empties t.
func (t *Frames) Settle() *Queue {
	t.pack(0)
	q := &Queue{}
	for _, r := range t.runs {
		q.left += r.count
		q.runs = append(q.runs, r.unpack())
	}
	*t = Frames{}
	return q
}

// A Queue passes the frames of a thread in order: by start, and the outer one first.
type Queue struct {
	runs []*unpacking // that are not at their end, in the order they were added in
	left int
}

// Len returns how many frames are left.
func (q *Queue) Len() int { return q.left }

// Next moves the next frames into a buffer, as many as are left and fit, and returns them.
func (q *Queue) Next(into []Frame) []Frame {
	into = into[:min(len(into), q.left)]
	for i := range into {
		first := 0
		for k := 1; k < len(q.runs); k++ {
			if compareFrames(q.runs[k].head, q.runs[first].head) < 0 {
				first = k
			}
		}
		r := q.runs[first]
		into[i] = r.head
		if !r.next() {
			q.runs = slices.Delete(q.runs, first, first+1)
		}
	}
	q.left -= len(into)
	return into
}

// sortFrames sorts frames. Equal ones keep their order.
func sortFrames(frames []Frame) {
	if !slices.IsSortedFunc(frames, compareFrames) {
		slices.SortStableFunc(frames, compareFrames)
	}
}

// A Function is a function in a stack that was recorded as a whole.
type Function struct {
	Name   string // "drand()", "run_batch() (scheduler.py)", "[libcuda.so.1]"; "" if it says nothing
	Python bool   // of Python's interpreter, or run by it
	Own    bool   // of no library
}

// FunctionOf returns what a symbol of a module is. For Python functions, the module is the file, or the
// symbol contains it in the form that Python writes for perf: "py::run_batch:/srv/scheduler.py".
func FunctionOf(symbol, module string) Function {
	if text, ok := strings.CutPrefix(symbol, "py::"); ok {
		symbol, module, _ = strings.Cut(text, ":")
		return pythonFunction(symbol, module)
	}
	if strings.HasSuffix(module, ".py") {
		return pythonFunction(symbol, module)
	}
	if strings.HasPrefix(symbol, staticRuntime) {
		symbol = "[" + strings.TrimSuffix(staticRuntime, "_") + "]" // without its hash
	}
	base := path.Base(module)
	fn := Function{Name: symbol, Python: strings.HasPrefix(base, "python") || strings.HasPrefix(base, "libpython")}
	if strings.HasPrefix(symbol, "[") {
		if symbol == module || symbol == "[Unknown]" { // "[Broken backtraces]"
			fn.Name = ""
		}
		return fn
	}
	symbol, _, _ = strings.Cut(symbol, "::{lambda")
	symbol, _, _ = strings.Cut(symbol, "@") // the version of a function of the C library
	if fn.Name = profile.BareName(symbol); !strings.HasSuffix(fn.Name, ")") {
		fn.Name += "()"
	}
	fn.Own = !fn.Python && !nativeLibrary.MatchString(base) && !inlined.MatchString(kernelname.Parse(symbol).Path())
	return fn
}

func pythonFunction(name, file string) Function {
	return Function{name + "() (" + path.Base(file) + ")", true, !ofLibrary(file)}
}

// nativeLibrary matches files that are not programs: shared objects, what the kernel maps, the launcher
// of nsys.
var nativeLibrary = lazyregexp.New(`\.so(\.|$|\d)|^\[|^anon$|^\.$|^nsys|\.dll$`)

// staticRuntime begins the names of functions of the CUDA runtime that is linked into a program.
const staticRuntime = "libcudart_static_"

// inlined matches library functions that compilers put into programs.
var inlined = lazyregexp.New(`\bstd::|\b__|^_start$|\bcu(da|blas|dnn|fft)?[A-Z]\w*$`)

// packedFrames are frames as bytes: each as its differences from the one before, which are small.
type packedFrames struct {
	chunks   [][]byte
	count    int
	last     Frame
	unsorted bool // some frame belongs before its predecessor
}

const (
	// chunkSize is small, so that little memory waits to be filled, or for the rest of a chunk to be
	// read.
	chunkSize = 1 << 15
	// maxPacked is the most that a frame takes: four integers and the kind.
	maxPacked = 4*binary.MaxVarintLen64 + 1
)

// add packs a frame.
func (p *packedFrames) add(f *Frame) {
	p.unsorted = p.unsorted || p.count > 0 && compareFrames(*f, p.last) < 0
	n := len(p.chunks)
	if n == 0 || len(p.chunks[n-1]) > chunkSize-maxPacked {
		p.chunks = append(p.chunks, nil)
		n++
		if n > 1 { // the first one grows: most threads do little
			p.chunks[n-1] = make([]byte, 0, chunkSize)
		}
	}
	b := append(p.chunks[n-1], byte(f.Kind))
	b = binary.AppendVarint(b, int64(f.From-p.last.From))
	b = binary.AppendUvarint(b, uint64(f.To-f.From))
	b = binary.AppendVarint(b, f.Correlation-p.last.Correlation)
	b = binary.AppendUvarint(b, uint64(f.Name))
	p.chunks[n-1], p.last = b, *f
	p.count++
}

// unpack returns the frames, of which there must be one, in order, and frees the packed ones.
func (p *packedFrames) unpack() *unpacking {
	u := &unpacking{Packed: memory.Unpack(p.chunks)}
	if p.unsorted {
		u.sorted = make([]Frame, 0, p.count)
		for u.decode() {
			u.sorted = append(u.sorted, u.head)
		}
		sortFrames(u.sorted)
	}
	*p = packedFrames{}
	u.next()
	return u
}

// An unpacking passes packed frames.
type unpacking struct {
	memory.Packed
	head   Frame
	sorted []Frame // the rest of the frames that had to be sorted
}

// next moves to the next frame, and reports whether there is one.
func (u *unpacking) next() bool {
	if len(u.sorted) == 0 {
		return u.decode()
	}
	u.head, u.sorted = u.sorted[0], u.sorted[1:]
	return true
}

// decode moves to the frame that was packed next, and reports whether there is one.
func (u *unpacking) decode() bool {
	if !u.More() {
		return false
	}
	f := &u.head
	f.Kind = Kind(u.Byte())
	f.From += trace.Time(u.Signed())
	f.To = f.From + trace.Time(u.Unsigned())
	f.Correlation += u.Signed()
	f.Name = trace.Sym(u.Unsigned())
	return true
}
