package host

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Activity classifies what a thread did at some moment.
type Activity uint8

const (
	NotRecorded Activity = iota // nothing that was recorded
	InRange                     // in a range, and in nothing that says more
	InPython
	InOperator
	Launching
	Syncing
	Copying
	CopyingPageable // memory that the operating system may move: the call may take as long as the copy
	Allocating
	LoadingModule
	OtherCall   // of CUDA
	SystemCall  // into the operating system
	Locked      // waits for a lock
	Sleeping    // waits for time to pass, or for input
	Collecting  // garbage
	LoadingData // in PyTorch's data loader, or waiting for it, and in nothing that says more
	OtherThread
	InNative // code of a program or a library, where it was interrupted
	OffCPU   // no core, and nothing recorded that blocks
	OnDevice // does not matter: the launch had been made, or is unknown
	numDid
)

var didWords = [numDid]string{
	NotRecorded: "not recorded", InRange: "range", InPython: "Python", InOperator: "operator", Launching: "launch", Syncing: "sync call",
	Copying: "copy call", CopyingPageable: "pageable copy", Allocating: "memory call", LoadingModule: "module load", OtherCall: "runtime call", SystemCall: "OS call", Locked: "lock",
	Sleeping: "waiting", Collecting: "garbage collection", LoadingData: "data loader", OtherThread: "other thread",
	InNative: "native code", OffCPU: "off CPU", OnDevice: "device",
}

func (d Activity) String() string { return didWords[d] }

// Idle reports whether the thread itself does nothing.
func (d Activity) Idle() bool { return d == NotRecorded || d == InRange || d == OffCPU || d.waits() }

// waits reports whether the thread waits for a lock, for time to pass, or for input.
func (d Activity) waits() bool { return d == Locked || d == Sleeping }

// A Meaning is what the name of a frame says.
type Meaning struct {
	seen     bool
	Name     trace.Sym // without addresses and numbers of steps and modules, which differ from call to call
	Activity Activity
	// Own reports that a Python function belongs neither to Python nor to a library that every server
	// has: it is the place in the code that people know.
	Own bool
	// Clear reports that the name says nothing: the frame around it does.
	Clear bool
}

// Names caches the meanings of names.
type Names struct {
	syms   *trace.Symbols
	kinds  [numKinds]order.Paged[Meaning]
	ranges *trace.PerName[*profilewalk.StepLabel]
}

// NewNames returns a cache of the meanings of names of events. It is for one goroutine at a time.
func NewNames(syms *trace.Symbols) *Names {
	return &Names{syms: syms, ranges: profilewalk.StepNames(syms)}
}

// Compare orders symbols by their names.
func (n *Names) Compare(a, b trace.Sym) int { return strings.Compare(n.syms.Name(a), n.syms.Name(b)) }

// Text returns what a frame of a kind and a name is called.
func (n *Names) Text(kind Kind, name trace.Sym) string { return n.syms.Name(n.Of(kind, name).Name) }

// Of returns the meaning of a name, for a kind of frame.
func (n *Names) Of(kind Kind, name trace.Sym) *Meaning {
	m := n.kinds[kind].At(int64(name))
	if !m.seen {
		*m = n.look(kind, name)
		m.seen = true
	}
	return m
}

func (n *Names) look(kind Kind, sym trace.Sym) Meaning {
	text := n.syms.Name(sym)
	if (kind == RangeFrame || kind == OperatorFrame) && IsLoader(text) {
		return Meaning{Name: sym, Activity: LoadingData}
	}
	switch kind {
	case RangeFrame:
		if name, _, ok := profile.CutOperatorRange(text); ok {
			return Meaning{Name: n.syms.Intern(name), Activity: InOperator}
		}
		switch step := n.ranges.Of(sym); {
		case step == nil:
		case step.OfServer():
			text = step.Words() + " step"
		default: // "ProfilerStep#7"
			text, _, _ = strings.Cut(text, "#")
		}
		return Meaning{Name: n.syms.Intern(text), Activity: InRange}
	case PythonFrame:
		return n.lookPython(text)
	case OperatorFrame:
		return Meaning{Name: sym, Activity: InOperator, Clear: strings.HasPrefix(text, "Torch-Compiled Region") || strings.Contains(text, "CompiledFxGraph")}
	case StackFrame:
		return Meaning{Name: sym, Activity: InNative}
	case SystemFrame:
		return Meaning{Name: sym, Activity: firstOf(systemCalls, text, SystemCall)}
	}
	m := Meaning{Name: n.syms.Intern(profile.CallName(text)), Activity: didInCall(text)}
	if kind == PageableFrame {
		m.Activity = CopyingPageable
	}
	return m
}

// loaderPrefix begins the annotation that PyTorch makes while a loop asks its data loader for a batch. The class
// of the iterator follows: _SingleProcessDataLoaderIter has no workers, and loads in the thread that asks.
const loaderPrefix = "enumerate(DataLoader)#"

// IsLoader reports whether an annotation is of a data loader.
func IsLoader(name string) bool { return strings.HasPrefix(name, loaderPrefix) }

// WithoutWorkers reports whether an annotation is of a data loader that loads in the thread that asks it.
func WithoutWorkers(loader string) bool { return strings.Contains(loader, "_SingleProcess") }

// didInCall returns what a thread does in a call of CUDA.
func didInCall(name string) Activity {
	switch reason := gpu.ReasonOf(name); {
	case reason == gpu.Modules:
		return LoadingModule
	case reason == gpu.Allocation:
		return Allocating
	case reason == gpu.AfterSync:
		return Syncing
	case strings.Contains(name, "Memcpy"), strings.Contains(name, "Memset"):
		return Copying
	case strings.Contains(name, "Launch"):
		return Launching
	}
	return OtherCall
}

// A nameRule says what a thread does in a frame whose name contains part.
type nameRule struct {
	part string
	did  Activity
}

// firstOf returns what the first matching rule says, or else otherwise.
func firstOf(rules []nameRule, name string, otherwise Activity) Activity {
	for _, r := range rules {
		if strings.Contains(name, r.part) {
			return r.did
		}
	}
	return otherwise
}

// systemCalls are calls into the operating system that wait.
var systemCalls = []nameRule{
	{"mutex", Locked}, {"cond_wait", Locked}, {"cond_timedwait", Locked}, {"rwlock", Locked}, {"sem_", Locked}, {"pthread_join", Locked},
	{"nanosleep", Sleeping}, {"usleep", Sleeping}, {"poll", Sleeping}, {"select", Sleeping}, {"epoll", Sleeping},
}

// builtins are built-in functions of Python that wait or collect garbage, by their names without addresses.
var builtins = []nameRule{
	{"acquire of _thread.", Locked}, {"acquire of _multiprocessing.", Locked}, {"__enter__ of _thread.", Locked},
	{"built-in function sleep", Sleeping}, {"method poll of", Sleeping}, {"method recv", Sleeping}, {"method accept of", Sleeping},
	{"built-in function select", Sleeping}, {"method wait of", Sleeping}, {"method select of", Sleeping},
	{"built-in function collect", Collecting}, {"method collect of module", Collecting},
}

// functions are functions of Python's own modules that wait, if nothing is recorded within them: then
// the wait began before the recording.
var functions = []nameRule{
	{"threading.py wait ", Locked}, {"threading.py join ", Locked}, {"threading.py _wait_for_tstate_lock ", Locked}, {"threading.py acquire ", Locked},
	{"queue.py get ", Locked}, {"queue.py put ", Locked}, {"_base.py result ", Locked}, {"_base.py wait ", Locked}, {"thread.py _worker ", Locked},
	{"selectors.py select ", Sleeping}, {"subprocess.py wait ", Sleeping}, {"subprocess.py communicate ", Sleeping},
	{"connection.py poll ", Sleeping}, {"connection.py wait ", Sleeping}, {"connection.py recv ", Sleeping}, {"connection.py _recv ", Sleeping},
	{"poll.py poll ", Sleeping}, {"socket.py recv ", Sleeping}, {"socket.py accept ", Sleeping},
}

// collectorName is what PyTorch's profiler calls a run of Python's garbage collector.
const collectorName = "Python GC"

// address matches the address of an object.
var address = lazyregexp.New(`(?: object)? at 0x[0-9a-fA-F]+`)

// generated matches the file of code that torch.fx generated, which has a number for each piece.
var generated = lazyregexp.New(`^<eval_with_key>\.\d+\(`)

// lookPython returns the meaning of a Python frame: a function with its file and line, something built
// in, or a module of PyTorch.
func (n *Names) lookPython(text string) Meaning {
	m := Meaning{Activity: InPython}
	if file, _, function, ok := cutPython(text); ok {
		m.Name, m.Own = n.syms.Intern(generated.ReplaceAllString(text, "<eval_with_key>(")), !ofLibrary(file)
		if !m.Own {
			m.Activity = firstOf(functions, path.Base(file)+" "+function+" ", InPython)
		}
		return m
	}
	if class := profile.ModuleClass(text); class != "" {
		m.Name, m.Clear = n.syms.Intern(profile.ModulePrefix+class), true
		return m
	}
	text = address.ReplaceAllString(text, "")
	if m.Activity = firstOf(builtins, text, InPython); strings.HasPrefix(text, collectorName) {
		m.Activity = Collecting
	}
	m.Name = n.syms.Intern(text)
	return m
}

// cutPython takes the name of a Python function apart: "sglang/srt/managers/scheduler.py(2262): run_batch".
func cutPython(name string) (file, line, function string, ok bool) {
	const after = "): "
	for end := strings.LastIndex(name, after); end > 0; end = strings.LastIndex(name[:end], after) {
		file = strings.TrimRight(name[:end], "0123456789")
		line, function = name[len(file):end], name[end+len(after):]
		if line != "" && function != "" && len(file) > 1 && file[len(file)-1] == '(' {
			return file[:len(file)-1], line, function, true
		}
	}
	return "", "", "", false
}

// libraries are folders of code that every server runs and nobody asks about. Paths begin with these
// once the folder of the packages is cut off.
var libraries = []string{"torch/", "triton/", "numpy/", "zmq/", "tqdm/", "asyncio/", "concurrent/", "multiprocessing/", "json/", "logging/",
	"collections/", "importlib/", "ctypes/", "email/", "http/", "urllib/", "xml/", "unittest/", "encodings/", "<frozen ", "uvloop/", "uvicorn/"}

// modules are Python's modules that consist of one file.
var modules = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq("threading queue contextlib functools inspect selectors socket socketserver subprocess typing abc copy pickle " +
		"random re os enum dataclasses weakref warnings types tempfile shutil runpy heapq bisect time datetime uuid tokenize ast dis linecache traceback " +
		"string textwrap struct signal ssl _weakrefset _collections_abc codecs io operator posixpath genericpath fnmatch glob pathlib statistics numbers " +
		"decimal fractions hashlib base64 platform stat sre_compile sre_parse keyword reprlib copyreg site bdb cProfile profile pstats gc sched nturl2path") {
		modules[name+".py"] = true
	}
}

// ofLibrary reports whether a file belongs to Python or to a library.
func ofLibrary(file string) bool {
	if _, rest, ok := strings.Cut(file, "-packages/"); ok {
		file = rest
	} else if _, rest, ok := strings.Cut(file, "/lib/python3"); ok {
		_, file, _ = strings.Cut(rest, "/")
		return file != "" // the folder itself holds Python's own modules
	}
	return modules[file] || slices.ContainsFunc(libraries, func(l string) bool { return strings.HasPrefix(file, l) })
}

// Short returns a Python function in the form for sentences: "run_batch() (scheduler.py:2262)". Other
// names stay as they are.
func Short(name string) string {
	file, line, function, ok := cutPython(name)
	if !ok {
		return strings.TrimSuffix(strings.TrimPrefix(name, "<"), ">")
	}
	return fmt.Sprintf("%s() (%s:%s)", function, path.Base(file), line)
}
