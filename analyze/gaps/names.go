package gaps

import (
	"path"
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Did is what a thread did at some moment.
type Did uint8

const (
	NotRecorded Did = iota // nothing that was recorded
	InRange                // something in a range that nothing else tells of
	InPython
	InOperator
	Launching
	Syncing
	Copying
	CopyingPageable // memory that the operating system may move: the call may take as long as the copy
	Allocating
	LoadingModule
	OtherCall  // of CUDA
	SystemCall // into the operating system
	Locked     // waits for a lock
	Sleeping   // waits for time to pass, or for input
	Collecting // garbage
	OtherThread
	OnDevice // nothing that matters: the launch had been made, or is not known
	numDid
)

var didWords = [numDid]string{
	NotRecorded: "not recorded", InRange: "range", InPython: "Python", InOperator: "operator", Launching: "launch", Syncing: "sync call",
	Copying: "copy call", CopyingPageable: "pageable copy", Allocating: "memory call", LoadingModule: "module load", OtherCall: "CUDA call", SystemCall: "OS call", Locked: "lock",
	Sleeping: "waiting", Collecting: "garbage collection", OtherThread: "other thread", OnDevice: "device",
}

func (d Did) String() string { return didWords[d] }

// idle reports whether the thread itself does nothing.
func (d Did) idle() bool {
	return d == NotRecorded || d == InRange || d == Locked || d == Sleeping
}

// A meaning is what the name of a frame says.
type meaning struct {
	seen bool
	name trace.Sym // without addresses, which differ from call to call
	did  Did
	// own tells that a Python function is neither of Python nor of a library that every
	// server has: the place in the code that people know.
	own bool
	// clear tells that the name says nothing: what it is in does.
	clear bool
}

// names are the meanings of names, each looked at once.
type names struct {
	syms   *trace.Symbols
	kinds  [numFrameKinds]walk.Paged[meaning]
	ranges walk.StepNames
}

func newNames(syms *trace.Symbols) *names {
	return &names{syms: syms, ranges: walk.StepNames{Syms: syms}}
}

// compare orders symbols by what they stand for.
func (n *names) compare(a, b trace.Sym) int { return strings.Compare(n.syms.Name(a), n.syms.Name(b)) }

func (n *names) of(kind frameKind, name trace.Sym) *meaning {
	m := n.kinds[kind].At(int64(name))
	if !m.seen {
		*m = n.look(kind, name)
		m.seen = true
	}
	return m
}

func (n *names) look(kind frameKind, sym trace.Sym) meaning {
	text := n.syms.Name(sym)
	switch kind {
	case rangeFrame:
		if at := operatorRange.FindStringIndex(text); at != nil {
			return meaning{name: n.syms.Intern(text[:at[0]]), did: InOperator}
		}
		switch step := n.ranges.Of(sym); {
		case step == nil:
		case step.OfServer():
			text = step.Words() + " step"
		default: // "ProfilerStep#7"
			text, _, _ = strings.Cut(text, "#")
		}
		return meaning{name: n.syms.Intern(text), did: InRange}
	case pythonFrame:
		return n.lookPython(text)
	case operatorFrame:
		return meaning{name: sym, did: InOperator, clear: strings.HasPrefix(text, "Torch-Compiled Region") || strings.Contains(text, "CompiledFxGraph")}
	case systemFrame:
		return meaning{name: sym, did: firstOf(systemCalls, text, SystemCall)}
	}
	m := meaning{name: n.syms.Intern(profile.CallName(text)), did: didInCall(text)}
	if kind == pageableFrame {
		m.did = CopyingPageable
	}
	return m
}

// operatorRange matches the range that PyTorch's emit_nvtx makes of an operator:
// "aten::copy_, seq = 17, op_id = 3, sizes = [[2]]".
var operatorRange = regexp.MustCompile(`, (?:seq|op_id|sizes) = `)

// didInCall returns what a thread does in a call of CUDA.
func didInCall(name string) Did {
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

// A nameRule says what a thread does in a frame whose name has a part.
type nameRule struct {
	part string
	did  Did
}

// firstOf returns what the first rule says that fits, else what is given.
func firstOf(rules []nameRule, name string, otherwise Did) Did {
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

// builtins are functions of Python that wait, by their names without addresses.
var builtins = []nameRule{
	{"acquire of _thread.", Locked}, {"acquire of _multiprocessing.", Locked}, {"__enter__ of _thread.", Locked},
	{"built-in function sleep", Sleeping}, {"method poll of", Sleeping}, {"method recv", Sleeping}, {"method accept of", Sleeping},
	{"built-in function select", Sleeping}, {"method wait of", Sleeping}, {"method select of", Sleeping},
	{"built-in function collect", Collecting}, {"method collect of module", Collecting},
}

// functions are those of Python's own modules that wait, if nothing is recorded in them: what
// they wait in began before the recording.
var functions = []nameRule{
	{"threading.py wait ", Locked}, {"threading.py join ", Locked}, {"threading.py _wait_for_tstate_lock ", Locked}, {"threading.py acquire ", Locked},
	{"queue.py get ", Locked}, {"queue.py put ", Locked}, {"_base.py result ", Locked}, {"_base.py wait ", Locked}, {"thread.py _worker ", Locked},
	{"selectors.py select ", Sleeping}, {"subprocess.py wait ", Sleeping}, {"subprocess.py communicate ", Sleeping},
	{"connection.py poll ", Sleeping}, {"connection.py wait ", Sleeping}, {"connection.py recv ", Sleeping}, {"connection.py _recv ", Sleeping},
	{"poll.py poll ", Sleeping}, {"socket.py recv ", Sleeping}, {"socket.py accept ", Sleeping},
}

// collectorName is what PyTorch's profiler calls a run of Python's garbage collector.
const collectorName = "Python GC"

// address matches where an object lies.
var address = regexp.MustCompile(`(?: object)? at 0x[0-9a-fA-F]+`)

// lookPython says what a frame of Python is: a function, with its file and line, something
// built in, or a module of PyTorch.
func (n *names) lookPython(text string) meaning {
	m := meaning{did: InPython}
	if f, ok := profile.ParsePython(text); ok {
		m.name, m.own = n.syms.Intern(text), !f.OfLibrary()
		if !m.own {
			m.did = firstOf(functions, path.Base(f.File)+" "+f.Name+" ", InPython)
		}
		return m
	}
	if strings.HasPrefix(text, "nn.Module: ") {
		m.clear = true
	}
	text = address.ReplaceAllString(text, "")
	if m.did = firstOf(builtins, text, InPython); strings.HasPrefix(text, collectorName) {
		m.did = Collecting
	}
	m.name = n.syms.Intern(text)
	return m
}
