package profile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Profile is what a profiler recorded. Times are nanoseconds on the clock of the host that wrote it, with the
// origin given by Origin.
//
// Events keep the order of the file and refer to rows by number. Collectives and Steps are complete, even if a
// [Filter] omitted Events.
type Profile struct {
	Name string
	Meta Meta
	Rows []Row // by first appearance

	Events   []Slice // complete events ("X", and pairs of begin and end)
	Instants []Instant
	Samples  []CounterSample // of counters that are drawn
	Arrows   []Arrow
	// Counters are values for reports, by time, for a profile of one Part; their Rank is meaningless.
	Counters []CounterValue

	// Grids are those of the kernels whose grid was recorded, in the order of Events.
	Grids []KernelGrid

	Collectives Collectives
	Steps       []Step

	// Fingerprint is the work of devices, by which two recordings of one process by different profilers are
	// recognized, if Filter.Fingerprint asks for it.
	Fingerprint []Fingerprint

	// First and Last are the bounds of all events, including those that a Filter omitted; Total is their number:
	// every record of the file with a time, so that a begin and its end are two, but not names of threads and the
	// like.
	First, Last trace.Time
	Total       int
}

// NoEvent is the index of an event that a [Filter] omitted.
const NoEvent = -1

// Origin is the origin of the times of a file.
type Origin uint8

const (
	OriginUnknown Origin = iota // not in the file
	OriginUnix                  // 1970: absolute times, or baseTimeNanoseconds was added
)

// Meta is a file's description of itself, outside of its events.
type Meta struct {
	Origin Origin
	// Epoch identifies an unknown origin of times, and is the same in all files with that origin: "boot of
	// 7a08373d". "" is an origin that no other file shares.
	Epoch string
	// Base is the offset added to the times of the file, in ns: its baseTimeNanoseconds; 0 is none or unknown. A
	// second pass gives it to chrometrace.Options.
	Base int64
	// Until is the end of the recording, if events go on beyond it because they were only closed later. 0 means the
	// end of the last event.
	Until trace.Time
	// Blur is the possible error of the times of collectives in ns, if only their durations were recorded;
	// math.MaxInt64 if only their order is known.
	Blur      int64
	Rank      int32 // distributedInfo.rank; -1 is unknown, or there are several Parts
	WorldSize int32 // distributedInfo.world_size; -1 is unknown
	Host      string
	Backend   string // "nccl", "gloo", ...; "" is unknown
	// HostGroup is the number of ranks in the groups that communicate between hosts, if all such groups have the
	// same size; 0 is unknown.
	HostGroup int32
	// Parts are labels of the parts of the file, if this program wrote it, or several ranks did one after another:
	// "node0/TP0-DP1". One may be "".
	Parts   map[string]string
	Devices []Device
	// Recorded are the optional recordings of the profiler, which slow the host down: "shapes", "stacks".
	Recorded []string
	PID      int64         // the process; 0 is unknown, or there are several
	OnGPU    bool          // according to an export, the process used an accelerator
	Hints    []naming.Hint // hints at the rank, in case there is no better source; best first
	// GPU is the only accelerator that the process used, in the machine's numbering; -1 is unknown, or there are
	// several.
	GPU int32
	// Attributes are the other top-level values that are not lists or objects, in the order of the file.
	Attributes []trace.Attribute
}

// A Device is an accelerator that the process could see.
type Device struct {
	ID   int64
	Name string
	UUID string // "" is unknown
}

// RowKind is the kind of a row.
type RowKind uint8

const (
	RowThread  RowKind = iota // a thread of a process
	RowStream                 // a stream or queue of a device
	RowAsync                  // async events of one id, which may overlap
	RowCounter                // a counter
	RowOther                  // the profiler's own rows ("Spans", "Traces")
)

// A Row holds events: those of a thread, a stream, or a counter.
type Row struct {
	Kind RowKind
	// Part distinguishes the ranks of a merged file: "TP00-DP01" from SGLang's merger. It is "" in a file of one
	// rank. Ids of the file are unique within a part.
	Part string
	// PID and TID are the numbers in the file, 0 if PIDText and TIDText are not numbers. On a RowStream they are
	// device and stream.
	PID, TID         int64
	PIDText, TIDText string
	// Process and Name are from process_name and thread_name; "" is unknown. A thread or stream without a name has
	// its TIDText as name, if that is not a number. A counter has a name of its own, with its id if it has one
	// ("memory [2]"), and a RowAsync that of its first event.
	Process, Name string
	Labels        string // from process_labels: "CPU", "GPU 3"
	// ProcessSort and Sort are process_sort_index and thread_sort_index; 0 if
	// there is none.
	ProcessSort, Sort int64
	// Folder is the path of groups that contain the row, outermost first, separated by " > "; "" is none.
	Folder string
	Unit   string // of a counter; "" is unknown
}

// An Instant is an event without a duration.
type Instant struct {
	Time trace.Time
	Row  int32
	Name trace.Sym
	Cat  trace.Sym // 0 is none
	Args trace.ArgsID
}

// A CounterSample is the value of a counter from a moment on. Its row is a RowCounter.
type CounterSample struct {
	Time  trace.Time
	Value float64
	Row   int32
}

// A Fingerprint is a piece of work of a device, which copies of one recording have in common.
type Fingerprint struct {
	Time trace.Time
	Dur  int64
	Name trace.Sym
	Row  int32
}

// A KernelGrid is the grid of a kernel.
type KernelGrid struct {
	Event int32 // index in Events
	Grid  Grid
}

// StepKind is what a step of the scheduler computes.
type StepKind uint8

const (
	StepOther   StepKind = iota // "ProfilerStep#7", or a mixture
	StepPrefill                 // "step[EXTEND bs=15 toks=15360]"
	StepDecode                  // "step[DECODE bs=32]"
)

// A Step is an annotation that spans one batch of a server or one iteration of a
// training loop.
type Step struct {
	Event int32 // index in Events, or NoEvent
	Row   int32
	Time  trace.Time
	Dur   int64
	Name  trace.Sym
	Kind  StepKind
	Batch int32 // requests; -1 is unknown
	OnGPU bool  // a copy of the annotation over its kernels
}

// FlowPhase is the phase of a flow event.
type FlowPhase byte

const (
	FlowStart FlowPhase = 's'
	FlowStep  FlowPhase = 't'
	FlowEnd   FlowPhase = 'f'
)

// An Arrow is one flow event. Events with the same Part, Cat, Name, and ID make a chain. Kineto's "ac2g" is not
// included: correlations have the same information, without its errors.
//
// A slice may also carry a flow itself ("bind_id"). Then Event is the slice, and Time its start. Such flows
// have neither Cat nor Name, and make chains of their own, in the order of their slices: FlowStep ends an arrow
// and starts the next one, but a FlowEnd does not end the chain, so that several arrows may lead from one
// FlowStart or FlowStep.
type Arrow struct {
	Time      trace.Time
	Row       int32
	Cat, Name trace.Sym
	ID        trace.Sym // as text
	Event     int32     // index in Events of a slice that carries a flow itself, else NoEvent
	Phase     FlowPhase
	Enclosing bool // bp:"e": binds to the slice around it, else to the next one
}

// Names of the groups of rows that a timeline has in addition to those of requests: notable findings, the load
// of servers, what each rank did, the ranks side by side at one time, which repeats rows of the former, and
// logs and metrics. A viewer sorts groups by name, so that a leading blank puts a group first.
const (
	Findings     = " Findings"
	CriticalPath = " Critical path" // what slow requests waited for
	Load         = " Load"
	ByRank       = "By rank"
	SideBySide   = "Side by side"
	Logged       = "Logs and metrics"
)

// A Version is the version of some software that a rank used, as noted by its profiler.
type Version struct{ Of, Is string }

// DriverVersion is the key in [Meta.Attributes] of the GPU driver's version, in exports.
const DriverVersion = "driver_version"

// versionSuffix is the suffix of the keys of versions: those of PyTorch's profiler, and keys that servers add,
// such as vllm_version.
const versionSuffix = "_version"

// versionNames are the usual names of software whose key is not clear enough. CUDA encodes versions in one
// number: 12090 is 12.9.
var versionNames = map[string]struct {
	name  string
	count bool
}{
	"cuda_runtime_version": {"CUDA runtime", true}, "cuda_driver_version": {"CUDA driver", true},
	"hip_runtime_version": {"HIP runtime", false}, "hip_driver_version": {"HIP driver", false},
	"cupti_version": {"CUPTI", false}, DriverVersion: {"GPU driver", false},
}

// Versions returns the versions in the file, in its order. Users add what they like to a trace, so it ignores
// long values.
func (m *Meta) Versions() (list []Version) {
	const long = 40
	for _, a := range m.Attributes {
		of, ok := strings.CutSuffix(a.Key, versionSuffix)
		if !ok || of == "" || a.Value == "" || len(a.Value) > long {
			continue
		}
		v := Version{of, a.Value}
		if known, ok := versionNames[a.Key]; ok {
			v.Of = known.name
			if n, err := strconv.Atoi(a.Value); known.count && err == nil {
				v.Is = fmt.Sprintf("%d.%d", n/1000, n%1000/10)
			}
		}
		list = append(list, v)
	}
	return list
}

// An Identity is the rank and the host of a profile, or of one of its parts.
type Identity struct {
	Part     string // of a merged file, "" in others
	Rank     trace.Rank
	RankFrom string // source of the rank: "label", "header", "process", "name"; "" is none
	Host     string // "" is unknown
}

// ProcessOf returns the name and the number of the process of a part of p. Both are "" and 0 if they are
// unknown, or if there are several processes, n. If some processes have a name, the others do not count:
// producers may use thread ids, or pids of another container, as pids of events.
func (p *Profile) ProcessOf(part string) (name string, pid int64, n int) {
	numbers := map[bool]map[string]int64{false: {}, true: {}} // by text, with and without a name
	for i := range p.Rows {
		r := &p.Rows[i]
		isDevice := r.Kind != RowThread || r.PIDText == "0" && r.Process == "" || strings.HasPrefix(r.Labels, "GPU") || r.Labels == "NPU"
		if r.Part != part || isDevice {
			continue
		}
		numbers[r.Process != ""][r.PIDText] = r.PID
		name = cmp.Or(name, r.Process)
	}
	processes := numbers[name != ""]
	if len(processes) > 1 {
		return "", 0, len(processes)
	}
	for _, number := range processes {
		pid = number
	}
	return name, cmp.Or(p.Meta.PID, pid), len(processes)
}
