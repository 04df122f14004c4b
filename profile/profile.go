package profile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// A Profile is what a profiler recorded. Times are nanoseconds on the clock of the
// host that wrote it, counted as Origin says.
//
// Events keep the order of the file and refer to rows by number. Collectives and Steps
// are complete whatever a [Filter] left out of Events.
type Profile struct {
	Name string
	Meta Meta
	Rows []Row // by first appearance

	Events   []Slice // complete events ("X", and begin/end pairs put together)
	Instants []Instant
	Samples  []CounterSample // of counters that are drawn
	Arrows   []Arrow
	// Counters are values for reports, by time, of a profile of one Part; their Rank means nothing.
	Counters []CounterValue

	// OneBlock are the kernels that were launched as a single block, in the order of Events.
	OneBlock []OneBlock

	Collectives Collectives
	Steps       []Step

	// Fingerprint is what devices did, by which two profilers that recorded one process
	// are recognized, where Filter.Fingerprint asks for it.
	Fingerprint []Fingerprint

	// First and Last are the bounds of all events, those that a Filter left out
	// included; Total is how many there were: every record of the file that has a
	// time, so that a begin and its end are two, but not names of threads and the
	// like.
	First, Last trace.Time
	Total       int
}

// NoEvent is the index of an event that a [Filter] left out.
const NoEvent = -1

// Origin says what the times of a file count from.
type Origin uint8

const (
	OriginUnknown Origin = iota // something that the file does not tell
	OriginUnix                  // 1970: absolute times, or baseTimeNanoseconds was added
)

// Meta is the information in a file about itself, outside of its events.
type Meta struct {
	Origin Origin
	// Epoch is the origin of times that do not name theirs, the same in all files that count from
	// that: "boot of 7a08373d". "" is a moment that no other file knows.
	Epoch string
	// Base is what was added to the times of the file, in ns: its
	// baseTimeNanoseconds; 0 is none or unknown. A second pass gives it to
	// chrometrace.Options.
	Base int64
	// Until is when the recording ended, if something goes on behind it: what threads were in
	// then, which somebody closed later. 0 is the last event.
	Until trace.Time
	// Blur is how far collectives may be off the times that they have, ns, where only how long each took was
	// recorded; math.MaxInt64 where only their order is known.
	Blur      int64
	Rank      int32 // distributedInfo.rank; -1 is unknown, or there are several Parts
	WorldSize int32 // distributedInfo.world_size; -1 is unknown
	Host      string
	Backend   string // "nccl", "gloo", ...; "" is unknown
	// HostGroup is how many ranks meet on their hosts, where all groups in which they do are of the same; 0 is unknown.
	HostGroup int32
	// Parts are labels of the parts of the file, which this program wrote, or several ranks
	// one after another: "node0/TP0-DP1". One may be "".
	Parts   map[string]string
	Devices []Device
	// Recorded is what the profiler recorded besides events, which slows the host down:
	// "shapes", "stacks".
	Recorded []string
	PID      int64  // the process; 0 is unknown, or there are several
	OnGPU    bool   // an export says that the process used an accelerator
	Hints    []Hint // what may tell the rank where nothing better does, best first
	// GPU is the only accelerator that the process used, as the machine counts; -1
	// is unknown, or there are several.
	GPU int32
	// Attributes are the other top-level values that are no lists or objects, in
	// the order of the file.
	Attributes []trace.Attribute
}

// A Hint is a rank in some group of processes, which need not be the whole world.
type Hint struct {
	From       string // "NCCL", "environment"
	Rank, Size int32
}

// A Device is an accelerator that the process could see.
type Device struct {
	ID   int64
	Name string
	UUID string // "" is unknown
}

// RowKind says what a row stands for.
type RowKind uint8

const (
	RowThread  RowKind = iota // a thread of a process
	RowStream                 // a stream or queue of a device
	RowAsync                  // async events of one id, which may overlap
	RowCounter                // a counter
	RowOther                  // the profiler's own rows ("Spans", "Traces")
)

// A Row is where events lie: a thread, a stream, a counter.
type Row struct {
	Kind RowKind
	// Part tells the ranks of a merged file apart: "TP00-DP01" of SGLang's
	// merger. "" in a file of one rank. Ids of the file are unique within a part.
	Part string
	// PID and TID are the numbers of the file, 0 where PIDText and TIDText are not
	// numbers. On a RowStream they are device and stream.
	PID, TID         int64
	PIDText, TIDText string
	// Process and Name are from process_name and thread_name; "" is unknown.
	// Without a name, a thread or stream is called by its TIDText if that is no
	// number. A counter has a name of its own, with its id if it has one
	// ("memory [2]"), and a RowAsync that of its first event.
	Process, Name string
	Labels        string // from process_labels: "CPU", "GPU 3"
	// ProcessSort and Sort are process_sort_index and thread_sort_index; 0 if
	// there is none.
	ProcessSort, Sort int64
	// Folder are the groups of rows that the row is part of, from the outermost on,
	// separated by " > "; "" is none.
	Folder string
	Unit   string // of a counter; "" is unknown
}

// An Instant is a moment that something happened at.
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

// A Fingerprint is something that a device did: what copies of one recording have in common.
type Fingerprint struct {
	Time trace.Time
	Dur  int64
	Name trace.Sym
	Row  int32
}

// A OneBlock is a kernel of a single block: see [Kernel].
type OneBlock struct {
	Event   int32 // index into Events
	Threads int32
}

// StepKind says what a step of the scheduler computes.
type StepKind uint8

const (
	StepOther   StepKind = iota // "ProfilerStep#7", or a mixture
	StepPrefill                 // "step[EXTEND bs=15 toks=15360]"
	StepDecode                  // "step[DECODE bs=32]"
)

// A Step is an annotation that spans one batch of a server or one iteration of a
// training loop.
type Step struct {
	Event int32 // index into Events, or NoEvent
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

// An Arrow is one flow event. Events of one Part, Cat, Name and ID make a chain.
// Kineto's "ac2g" is not here: correlations say the same, and without its errors.
//
// A flow may also be borne by slices themselves ("bind_id"). Then Event is the
// slice, and Time its start. Such flows have neither Cat nor Name, and make
// chains of their own, in the order of their slices: FlowStep ends an arrow and
// starts the next one, but a FlowEnd does not end the chain, so that several
// arrows may lead from one FlowStart or FlowStep.
type Arrow struct {
	Time      trace.Time
	Row       int32
	Cat, Name trace.Sym
	ID        trace.Sym // as text
	Event     int32     // index into Events of a slice that bears a flow itself, else NoEvent
	Phase     FlowPhase
	Enclosing bool // bp:"e": binds to the slice around it, else to the next one
}

// Names of the groups of rows that a timeline has beside those of requests: what stands
// out and how busy servers were, what each rank did, and, of all ranks, what they did at
// one time, which repeats rows of the former; and what logs and metrics say. A viewer sorts groups by name, so that a
// blank puts a group in front.
const (
	Findings     = " Findings"
	CriticalPath = " Critical path" // what slow requests waited for
	Load         = " Load"
	ByRank       = "By rank"
	SideBySide   = "Side by side"
	Logged       = "Logs and metrics"
)

// A Version is that of some software by which a rank ran, as its profiler noted it.
type Version struct{ Of, Is string }

// DriverVersion is the key of [Meta.Attributes] under which an export has the version of the
// driver of the GPUs.
const DriverVersion = "driver_version"

// versionSuffix ends the keys of versions: those of PyTorch's profiler, and what servers add,
// such as vllm_version.
const versionSuffix = "_version"

// versionNames are the usual names of software of which the key does not say it well. CUDA
// counts versions in one number: 12090 is 12.9.
var versionNames = map[string]struct {
	name  string
	count bool
}{
	"cuda_runtime_version": {"CUDA runtime", true}, "cuda_driver_version": {"CUDA driver", true},
	"hip_runtime_version": {"HIP runtime", false}, "hip_driver_version": {"HIP driver", false},
	"cupti_version": {"CUPTI", false}, DriverVersion: {"GPU driver", false},
}

// Versions returns those that the file tells, in its order. Users add what they like to a trace, so
// a long value is none.
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

// An Identity is which rank of which host a profile is of, or one of its parts.
type Identity struct {
	Part     string // of a merged file, "" of others
	Rank     trace.Rank
	RankFrom string // what tells: "label", "header", "process", "name"; "" is nothing
	Host     string // "" is unknown
}

// ProcessOf returns the name and the number of the process that a part of p is of. Both
// are "" and 0 if they are unknown, or there are n processes, more than one. Processes
// without a name do not count beside those that have one: producers give events numbers of
// threads, or those of another container.
func (p *Profile) ProcessOf(part string) (name string, pid int64, n int) {
	numbers := map[bool]map[string]int64{false: {}, true: {}} // by text, of those with a name and of the others
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
