package gpu

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Reason says why a device had nothing to run. Every nanosecond of idle time has
// exactly one, so that reasons add up to the idle time.
type Reason uint8

const (
	// NoReason is a call that does not hold up its thread.
	NoReason Reason = iota
	// Capturing: the host records a CUDA graph, and what it launches meanwhile does not run.
	Capturing
	// ProfilerStart: the host waits in the first recorded collective of hosts: ranks do not start
	// recording at the same time.
	ProfilerStart
	// Compiling: the host compiles code, as an annotation, a Python function, or a call of the runtime shows.
	Compiling
	// Modules: code is loaded, or a CUDA graph instantiated, before the next launch; or the first
	// launch of a kernel takes so long that it loads its code; or CUDA, or one of its libraries, starts
	// in a call that otherwise returns at once.
	Modules
	// Allocation: memory of the device, or pinned memory, is allocated or freed.
	Allocation
	// BlockingCopy: a copy that returns only when it is done.
	BlockingCopy
	// Meeting: the host is in a collective of hosts, such as one of gloo: it waits for other ranks, or for their data.
	Meeting
	// BetweenSteps: the host is in no step. Either there is no batch to run, or the
	// scheduler takes its time between two.
	BetweenSteps
	// AfterSync: a call waited until the device had run dry, so the next launch was bound to come late,
	// by no more than the call took.
	AfterSync
	// HostWork: the host had not launched what came next, and no call explains why: Python, tokenizing,
	// a lock, another process.
	HostWork
	// LaunchGap: what came next had been launched, and started less than 30 us later.
	LaunchGap
	// Dependency: what came next had been launched and waited longer: for an event, or for
	// work of another stream.
	Dependency
	// Withheld: what came next is a kernel that could have started, and nothing recorded kept it from
	// that: see [Held].
	Withheld
	// Unseen: the host waited for the device in a call, though nothing recorded ran there: it was busy
	// with unrecorded work, such as the kernels of a graph.
	Unseen
	// Migration: what came next moves pages of unified memory, because a kernel or the host touched
	// them.
	Migration
	// NotRecorded: the call that launched what came next was not recorded.
	NotRecorded
	NumReasons
)

// ReasonWords name reasons after "idle:".
var ReasonWords = [NumReasons]string{
	Capturing: "capturing a graph", ProfilerStart: "profilers start", Compiling: "compiling",
	Modules: "loading kernels", Allocation: "allocating memory", BlockingCopy: "blocking copy", Meeting: "in a gloo collective",
	BetweenSteps: "between steps", AfterSync: "after a sync call", HostWork: "host work",
	LaunchGap: "launch gaps", Dependency: "waiting for other work", Withheld: "held back", Unseen: "unrecorded work",
	Migration:   "unified memory",
	NotRecorded: "launch not recorded",
}

// Launched reports whether what came next had been launched.
func (r Reason) Launched() bool { return r >= LaunchGap && r <= Withheld }

// OfHost reports whether the host itself was late, rather than waiting for other ranks.
func (r Reason) OfHost() bool {
	return r >= Capturing && r <= HostWork && r != Meeting && r != ProfilerStart
}

// callReasons maps parts of the names of CUDA, HIP, and CANN calls, without the prefix cu, cuda, hip,
// or AscendCL@aclrt, to the reason why a device idles during them. The first match counts.
var callReasons = []struct {
	part   string
	reason Reason
}{
	{"Async", NoReason}, // also cudaMallocAsync: stream-ordered
	{"Synchronize", AfterSync}, {"WaitExternal", NoReason},
	{"ModuleLoad", Modules}, {"LibraryLoad", Modules}, {"ModuleUnload", Modules}, {"GraphInstantiate", Modules}, {"LinkComplete", Modules},
	{"Malloc", Allocation}, {"MemAlloc", Allocation}, {"HostAlloc", Allocation}, {"HostRegister", Allocation}, {"HostUnregister", Allocation},
	{"HostMalloc", Allocation}, {"MemCreate", Allocation}, {"MemMap", Allocation}, {"MemSetAccess", Allocation}, {"MemUnmap", Allocation},
	{"MemRelease", Allocation}, {"Free", Allocation},
	{"Memcpy", BlockingCopy}, {"Memset", NoReason}, {"MemsetD", NoReason},
}

// ReasonOf returns the reason why a device idles during calls of a name; NoReason for calls that return
// at once.
func ReasonOf(name string) Reason {
	rest := name
	switch {
	case rest == "AscendCL@opCompile": // within aclopCompileAndExecute
		return Compiling
	case strings.HasPrefix(rest, "AscendCL@aclrt"):
		rest = rest[len("AscendCL@aclrt"):]
	case strings.HasPrefix(rest, "cuda"):
		rest = rest[len("cuda"):]
	case strings.HasPrefix(rest, "cu"):
		rest = rest[len("cu"):]
	case strings.HasPrefix(rest, "hip"):
		rest = rest[len("hip"):]
	default:
		return NoReason
	}
	for _, c := range callReasons {
		if strings.Contains(rest, c.part) {
			return c.reason
		}
	}
	return NoReason
}

// startCalls are parts of the names of calls that return at once, unless CUDA or a library starts in
// them, or they load code: the first call of all creates the context, and lazy loading loads a kernel
// when it is first asked about.
var startCalls = []string{
	"Init", "DeviceGet", "GetDevice", "SetDevice", "CtxCreate", "CtxSet", "CtxGet", "PrimaryCtx", "GetVersion", "GetProcAddress", "StreamCreate", "StreamGet", "StreamIsCapturing",
	"EventCreate", "PointerGetAttribute", "FuncGet", "FuncSet", "Occupancy", "GetFunction", "GetKernel", "GetSymbol", "GetGlobal", "MemGetInfo",
}

// How long calls must take, ns, to show that CUDA, or one of its libraries, starts in them. Libraries
// create the context by freeing nothing. On an idle device, a free waits for nothing, and memory does
// not take this long: all 80 GB of a device are 40,000 pages of 2 MB, which a driver that takes a
// microsecond or two for each returns within 100 ms. There are few libraries, so few such calls count.
const (
	slowStart  = 1_000_000
	slowFree   = 100_000_000
	maxStarted = 3
)

// A startKind is how a call of a name may start CUDA.
type startKind uint8

const (
	startsNothing startKind = iota
	startsSlowly            // in a call that otherwise returns at once
	startsByFree
)

// startsIn returns how a call of a name may start CUDA.
func startsIn(name string) startKind {
	if !strings.HasPrefix(name, "cu") && !strings.HasPrefix(name, "hip") {
		return startsNothing
	}
	switch {
	case name == "cudaFree" || name == "hipFree" || strings.HasPrefix(name, "cuMemFree") && !strings.Contains(name, "Async") && !strings.Contains(name, "Host"):
		return startsByFree
	case strings.Contains(name, "Graph"):
		return startsNothing
	case slices.ContainsFunc(startCalls, func(part string) bool { return strings.Contains(name, part) }):
		return startsSlowly
	}
	return startsNothing
}

// A CallTime is how long calls of one name held up their threads, and what they returned,
// on all ranks.
type CallTime struct {
	Name   string
	Reason Reason // NoReason: they hold up nothing, and Time and Max are not measured
	N      int64
	Time   int64 // ns, sum of the durations
	Max    int64 // ns
	Starts bool  // CUDA, or a library of it, starts in these
	// Results are set for calls that ask for work; see mustSucceed.
	Results profilewalk.Results
}

func (c *CallTime) add(o *CallTime) {
	c.N += o.N
	c.Time = distribution.AddTimes(c.Time, o.Time)
	c.Max = max(c.Max, o.Max)
	c.Results.Merge(&o.Results)
}

// callTimes sums up the calls that hold up their threads or ask for work, by symbol.
type callTimes struct {
	syms *trace.Symbols
	rows order.Paged[callRow]
	used []trace.Sym
	sums []CallTime // of used, once all calls were added
}

// A callRow has the times and results of a name. Name is "" until its first call.
type callRow struct {
	CallTime
	starts      CallTime // calls in which CUDA starts, counted separately
	start       startKind
	mustSucceed bool
	// captureBegin: its calls begin the capture of a CUDA graph. captureMark: they begin or end it.
	captureBegin, captureMark bool
	outside                   bool // see waitsOutside
	launches                  launchKind
}

// add counts a call if it lies in the window, and returns its reason. started counts the calls of the
// rank that free memory and in which CUDA started.
func (c *callTimes) add(call *profile.Call, inWindow bool, started *int) Reason {
	row := c.rows.At(int64(call.Name))
	if row.Name == "" {
		row.Name = c.syms.Name(call.Name)
		row.Reason, row.mustSucceed = ReasonOf(row.Name), mustSucceed(row.Name)
		row.captureBegin, row.captureMark = captureMarkOf(row.Name)
		row.start, row.outside, row.launches = startsIn(row.Name), waitsOutside(row.Name), launchKindOf(row.Name)
		if row.Reason != NoReason || row.mustSucceed || row.start != startsNothing {
			c.used = append(c.used, call.Name)
		}
	}
	dur := call.Dur()
	starts := row.start == startsSlowly && dur >= slowStart
	if row.start == startsByFree && dur >= slowFree && *started < maxStarted {
		*started++
		starts = true
	}
	if starts {
		if inWindow {
			row.starts.add(&CallTime{N: 1, Time: dur, Max: dur})
		}
		return Modules
	}
	if !inWindow {
		return row.Reason
	}
	row.N++
	if row.Reason != NoReason {
		row.add(&CallTime{Time: dur, Max: dur})
	}
	if row.mustSucceed {
		row.Results.Add(call.Result)
	}
	return row.Reason
}

// close keeps only the sums, of names that were called in the window.
func (c *callTimes) close() {
	for _, name := range c.used {
		row := c.rows.At(int64(name))
		if row.N > 0 && (row.Reason != NoReason || row.mustSucceed) {
			c.sums = append(c.sums, row.CallTime)
		}
		if row.starts.N > 0 {
			row.starts.Name, row.starts.Reason, row.starts.Starts = row.Name, Modules, true
			c.sums = append(c.sums, row.starts)
		}
	}
	c.rows, c.used = order.Paged[callRow]{}, nil
}

// sumCalls merges the calls of all streams, the longest total first.
func sumCalls(walks []*gpuWalk) []CallTime {
	type key struct {
		name   string
		starts bool
	}
	at := map[key]int{}
	var out []CallTime
	for _, w := range walks {
		for i := range w.calls.sums {
			row := &w.calls.sums[i]
			of := key{row.Name, row.Starts}
			if k, ok := at[of]; ok {
				out[k].add(row)
				continue
			}
			at[of] = len(out)
			out = append(out, *row)
		}
	}
	slices.SortFunc(out, func(a, b CallTime) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
	return out
}

// workCalls are parts of the names of CUDA and HIP calls that ask a device for work or memory, or wait
// for it. Nobody makes these to see whether they fail. Libraries do that with other calls: they ask for
// symbols, features and peers that a driver may not have.
var workCalls = []string{"Launch", "Memcpy", "Memset", "Synchronize", "Malloc", "MemAlloc", "HostAlloc"}

// mustSucceed reports whether something is wrong if a call of a name fails.
func mustSucceed(name string) bool {
	return slices.ContainsFunc(workCalls, func(part string) bool { return strings.Contains(name, part) })
}
