package parse

import (
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Peculiarities of the PyTorch profiler (libkineto) and its back ends.
//
// In traces of PyTorch 1.13 to 2.3 the argument "External id" of runtime calls and kernels repeats the
// correlation and does not name the operator around the call (kineto#873, #978, #1001). To find the operator,
// look for the one that encloses the launch on its thread. Traces of ROCm may have nothing else that joins
// calls to the work that they launched: see [ByExternal].

// Lane distinguishes the rows that share a pid and a tid.
//
// This is necessary because Python functions without a working thread id are on pid 0, tid 0, and so may be
// stream 0 of device 0.
type Lane uint8

const (
	LaneAny    Lane = iota // unknown: the existing row of its pid and tid
	LaneThread             // work of a CPU
	LaneStream             // work of a device
	laneAsync
	laneCounter
)

// Role is the table that an event also belongs to.
type Role uint8

const (
	RoleNone   Role = iota
	RoleLaunch      // may have a correlation, as a call
	RoleWork        // may have a correlation, as launched work; kernels may be Collectives
	roleOp          // Collectives, if it has the arguments of one
	roleComm        // Collectives, always
	roleStep        // Steps, if it has the name of one
	RoleArrow       // redundant where correlations join the same events
	roleFlow        // written by our writer
)

// A category describes a value of "cat".
type category struct {
	name string // as in the file
	Now  string // name in recent versions; "" is the same
	lane Lane
	Role Role
}

// categories are those of libkineto's ActivityType.cpp, with their names before 2022. Case matters: "Trace" and
// "trace" differ.
var categories = []category{
	{"cpu_op", "", LaneThread, roleOp},
	{"user_annotation", "", LaneThread, roleStep},
	{"gpu_user_annotation", "", LaneStream, roleStep},
	{"kernel", "", LaneStream, RoleWork},
	{"gpu_memcpy", "", LaneStream, RoleWork},
	{"gpu_memset", "", LaneStream, RoleWork},
	{"cuda_runtime", "", LaneThread, RoleLaunch}, // also of ROCm: hipLaunchKernel, ...
	{"cuda_driver", "", LaneThread, RoleLaunch},
	{"cpu_instant_event", "", LaneThread, RoleNone},
	{"python_function", "", LaneThread, RoleNone},
	{"overhead", "", LaneThread, RoleNone},
	{"cuda_sync", "", LaneStream, RoleWork}, // the device's side of a wait; stream -1 is the whole device
	{"cuda_event", "", LaneStream, RoleNone},
	{"cuda_profiler_range", "", LaneStream, RoleNone},
	{"mtia_runtime", "", LaneThread, RoleLaunch},        // on the device's pid too, but on threads of its control core
	{"mtia_ccp_events", "kernel", LaneStream, RoleWork}, // what control cores run: kernels, copies and waits, by their names
	{"mtia_insight", "", LaneStream, RoleNone},
	{"glow_runtime", "", LaneThread, RoleLaunch},
	{"hpu_op", "", LaneThread, RoleLaunch}, // of Gaudi: calls of the host, despite the name
	{"xpu_runtime", "", LaneThread, RoleLaunch},
	{"xpu_driver", "", LaneThread, RoleLaunch},
	{"xpu_sync", "", LaneThread, RoleNone}, // a call that waits, on the process's pid
	{"xpu_scope_profiler", "", LaneStream, RoleNone},
	{"privateuse1_runtime", "", LaneThread, RoleLaunch},
	{"privateuse1_driver", "", LaneThread, RoleLaunch},
	{"collective_comm", "", LaneThread, roleComm}, // "xccl::..." of XPU, on the process's pid
	{"fwdbwd", "", LaneThread, RoleNone},          // arrows from forward to backward operators
	{"ac2g", "", LaneAny, RoleArrow},              // arrows from launches to kernels

	// Before 2022.
	{"Operator", "cpu_op", LaneThread, roleOp}, // annotations, too: see complete
	{"Kernel", "kernel", LaneStream, RoleWork},
	{"Memcpy", "gpu_memcpy", LaneStream, RoleWork},
	{"Memset", "gpu_memset", LaneStream, RoleWork},
	{"Runtime", "cuda_runtime", LaneThread, RoleLaunch},
	{"async", "", LaneAny, RoleArrow}, // the former name of ac2g

	// The category of all arrows of this package's writer.
	{"flow", "", LaneAny, roleFlow},
}

// LaunchArrow is the category of Ascend's arrows, which are all that joins launches and work.
const LaunchArrow = "HostToDevice"

// An argRole is the purpose for which the reader needs an argument.
type argRole uint8

const (
	argNone argRole = iota
	argCorrelation
	argExternal
	argCommsID
	argSeq
	argOp
	argGroup
	argRanks
	argDtype
	argIn
	argOut
	argGroupSize
	argSplits
	argGrid
	argBlock
	argName
	argLabels
	argSortIndex
	argPart
	argHost
	argRank
	argPID
	argTID
	argFrom
	argTo
	argRoles // number of roles
)

// collectiveArgs are the roles that make an event a collective.
const collectiveArgs = 1<<argOp | 1<<argGroup | 1<<argCommsID

var argNames = map[string]argRole{
	"correlation":         argCorrelation,
	"External id":         argExternal,
	"Collective name":     argOp,
	"Process Group Name":  argGroup,
	"Process Group ID":    argGroup, // March to April 2024
	"Process Group Ranks": argRanks, // as text, and cut off with "..." after 30 ranks
	"dtype":               argDtype,
	"In msg nelems":       argIn,
	"Out msg nelems":      argOut,
	"Group size":          argGroupSize,
	"In split size":       argSplits, // as text
	"grid":                argGrid,   // of blocks: [32, 1, 1]
	"block":               argBlock,  // of threads
	// Both since March 2026. Comms Id is a 64-bit hash, which can exceed 2^53: it must not be read as a float64.
	"Seq":      argSeq,
	"Comms Id": argCommsID,
	// Of metadata events.
	"name":       argName,
	"labels":     argLabels,
	"sort_index": argSortIndex,
	// Of metadata events of this package's writer.
	"part": argPart,
	"host": argHost,
	"rank": argRank,
	"pid":  argPID,
	"tid":  argTID,
	// Of the tasks of Ascend's collectives.
	"src rank": argFrom,
	"dst rank": argTo,
}

// minimalArgs are the arguments that ArgsMin keeps: without them, different events of one name look alike.
var minimalArgs = map[string]bool{
	"correlation":               true, // which launch
	"External id":               true, // which operator
	"external id":               true, // before 2022
	"Input Dims":                true, // what an operator works on
	"Input type":                true,
	"grid":                      true, // how a kernel was started
	"block":                     true,
	"graph id":                  true, // which graph, and which of its nodes
	"graph node id":             true,
	"bytes":                     true, // what a copy copies
	"memory bandwidth (GB/s)":   true,
	"Total Allocated":           true, // what an allocator holds
	"Total Reserved":            true,
	"Device Type":               true,
	"Device Id":                 true,
	"cuda_sync_kind":            true, // what is waited for
	"wait_on_stream":            true,
	"Collective name":           true, // what is communicated
	"Process Group Name":        true,
	"Process Group Ranks":       true,
	"dtype":                     true,
	"In msg nelems":             true,
	"Out msg nelems":            true,
	"Group size":                true,
	"Seq":                       true,
	"Comms Id":                  true,
	"Src Rank":                  true,
	"Dst Rank":                  true,
	"finished":                  true, // "false": the window ends before the operator
	"Process Group Description": true,
	"step":                      true, // which step, in timelines of training runs
	"Python id":                 true, // which call of a function
	"Python parent id":          true,
}

// windowEnd is the instant at which libkineto stopped recording.
const windowEnd = "Record Window End"

// otherRows are the pids of rows about the profiler itself.
var otherRows = map[string]bool{
	"Spans":  true, // the time that was recorded
	"Traces": true, // "Iteration Start"
	"":       true, // "Record Window End"
}

// collective records the event as a collective.
func (p *parser) collective(index, row int32, onGPU bool) {
	ev := &p.ev
	c := profile.Collective{
		Event: index, Row: row, Time: ev.ts, Dur: ev.dur, Name: p.nameOf(ev).sym, OnGPU: onGPU,
		Seq: p.intArg(argSeq), In: p.intArg(argIn), Out: p.intArg(argOut),
		Op: p.symArg(argOp), Group: p.symArg(argGroup), Ranks: p.symArg(argRanks), Dtype: p.symArg(argDtype),
		GroupSize: -1, Correlation: max(0, p.intArg(argCorrelation)),
	}
	if onGPU {
		c.Splits = p.symArg(argSplits)
	} else if c.Op == 0 && p.nameOf(ev).isWaiting() {
		c.Op = c.Name
	}
	if n := p.intArg(argGroupSize); n > 0 && n <= math.MaxInt32 {
		c.GroupSize = int32(n)
	}
	if p.found&(1<<argCommsID) != 0 {
		// This is a hash: even if it is printed as a signed number, its bits are right.
		text := string(p.got[argCommsID].text())
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			c.CommsID = u
		} else if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			c.CommsID = uint64(v)
		}
	}
	p.out.Collectives = append(p.out.Collectives, c)
}

// intArg returns the argument with a role; -1 if there is none.
func (p *parser) intArg(r argRole) int64 {
	if p.found&(1<<r) != 0 {
		if n, ok := jsonscan.Int(p.got[r].text()); ok {
			return n
		}
	}
	return -1
}

// symArg returns the text of the argument with a role; 0 if there is none.
func (p *parser) symArg(r argRole) trace.Sym {
	if p.found&(1<<r) == 0 {
		return 0
	}
	return p.symbols.Intern(p.idText(p.got[r].raw))
}
