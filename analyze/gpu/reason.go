package gpu

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
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
	// ProfilerStart: the host waits in the first collective of hosts that was recorded: ranks do not begin to record
	// at once.
	ProfilerStart
	// Compiling: the host compiles code, by an annotation that says so.
	Compiling
	// Modules are loaded, or a CUDA graph is instantiated, before the next launch; or the
	// first launch of a kernel takes so long that it loads its code; or CUDA, or a library of
	// it, starts in a call that else returns at once.
	Modules
	// Allocation: memory of the device, or pinned memory, is allocated or freed.
	Allocation
	// BlockingCopy: a copy that returns only when it is done.
	BlockingCopy
	// Meeting: the host is in a collective of hosts, as those of gloo: it waits for other ranks, or for their data.
	Meeting
	// BetweenSteps: the host is in no step. Either there is no batch to run, or the
	// scheduler takes its time between two.
	BetweenSteps
	// AfterSync: a call waited until the device had run dry, so that the next launch had
	// to come too late, by as much at most as the call took.
	AfterSync
	// HostWork: the host had not launched what came next, and made no call that explains
	// it: Python, tokenizing, a lock, another process.
	HostWork
	// LaunchGap: what came next had been launched, and started less than 30 us later.
	LaunchGap
	// Dependency: what came next had been launched and waited longer: for an event, or for
	// work of another stream.
	Dependency
	// Withheld: what came next is a kernel that could start, and nothing that was recorded kept it
	// from that: see [Held].
	Withheld
	// Unseen: the host waited for the device in a call, though the device shows nothing: it
	// was busy with what was not recorded, such as the kernels of a graph.
	Unseen
	// Migration: what came next moves pages of unified memory, when a kernel or the host
	// touches them.
	Migration
	// NotRecorded: no call of what came next was recorded.
	NotRecorded
	NumReasons
)

// ReasonWords are what reasons are called after "idle:".
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

// OfHost reports whether the host was late, for no other rank's sake.
func (r Reason) OfHost() bool {
	return r >= Capturing && r <= HostWork && r != Meeting && r != ProfilerStart
}

// callReasons maps parts of the names of CUDA, HIP, and CANN calls, without the prefix cu, cuda,
// hip, or AscendCL@aclrt, to the reason that they are for idle time. The first that fits counts.
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

// ReasonOf returns the reason that a call of a name is for idle time, NoReason for
// all that return at once.
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

// startCalls are parts of the names of calls that return at once, unless CUDA or a library starts
// in them, or code is loaded: whichever call is the first one makes the context, and lazy
// loading loads a kernel when it is first asked about.
var startCalls = []string{
	"Init", "DeviceGet", "GetDevice", "SetDevice", "CtxCreate", "CtxSet", "CtxGet", "PrimaryCtx", "GetVersion", "GetProcAddress", "StreamCreate", "StreamGet", "StreamIsCapturing",
	"EventCreate", "PointerGetAttribute", "FuncGet", "FuncSet", "Occupancy", "GetFunction", "GetKernel", "GetSymbol", "GetGlobal", "MemGetInfo",
}

// What tells that CUDA, or a library of it, starts in calls: how long these take at least, ns. Freeing
// nothing is how libraries make the context. Where the device is idle, a free waits for nothing,
// and memory takes no such time: all 80 GB of a device are 40,000 pages of 2 MB, which a driver
// that takes a microsecond or two for each gives back within 100 ms. There are few libraries.
const (
	slowStart  = 1_000_000
	slowFree   = 100_000_000
	maxStarted = 3
)

// A startKind is how a call of a name may start CUDA.
type startKind uint8

const (
	startsNothing startKind = iota
	startsSlowly            // in a call that else returns at once
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
	Reason Reason // NoReason: they hold up nothing, and the times are not measured
	N      int64
	Time   int64 // ns, sum of the durations
	Max    int64 // ns
	Starts bool  // CUDA, or a library of it, starts in these
	// Results are those of calls that ask for work; see mustSucceed.
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
	rows profilewalk.Paged[callRow]
	used []trace.Sym
	sums []CallTime // of used, once all calls were added
}

// A callRow has the times and results of a name. Name is "" until it was looked at.
type callRow struct {
	CallTime
	starts      CallTime // those in which CUDA starts, apart
	start       startKind
	mustSucceed bool
	// It begins or ends the recording of a CUDA graph.
	captureBegin, captureMark bool
	outside                   bool // see waitsOutside
	launches                  launchKind
}

// add counts a call if it lies in the window, and returns its reason. started is how often CUDA
// started on the rank in calls that free memory.
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

// close keeps the sums only, of names that calls in the window have.
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
	c.rows, c.used = profilewalk.Paged[callRow]{}, nil
}

// sumCalls returns what all streams have of calls, the longest total first.
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

// workCalls are parts of the names of CUDA and HIP calls that ask a device for work or
// memory, or wait for it. Nobody makes these in order to see whether they fail. Libraries do
// that with others: they ask for symbols, features and peers that a driver may not have.
var workCalls = []string{"Launch", "Memcpy", "Memset", "Synchronize", "Malloc", "MemAlloc", "HostAlloc"}

// mustSucceed reports whether something is wrong if a call of a name fails.
func mustSucceed(name string) bool {
	return slices.ContainsFunc(workCalls, func(part string) bool { return strings.Contains(name, part) })
}
