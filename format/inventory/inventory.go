// Package inventory holds the contents of files, except requests, as rows of tables: the tool that wrote them,
// their processes and devices, the kinds, numbers, and times of their records. 'sgtrace inspect' prints it.
//
// The reader of each format adds the rows of a file; printing does not depend on the format. Logs and dumps of
// flight recorders are listed once all are read, as that determines their time zones. Secrets in a file
// (environment, command lines, contents) are in no row. Times are Unix ns; if a row is not timed, they are
// unknown.
package inventory

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// An Inventory is the contents of files, collected one after another. The zero value is empty.
type Inventory struct {
	Exports    []Export
	Traces     []Trace
	Processes  []Process
	Devices    []Devices
	Tables     []Table
	Categories []Category
	Messages   []Message
	Logs       []Log

	idle map[string]int // row of Processes for those without events, by file
}

// An Export is an Nsight Systems export.
type Export struct {
	File     string
	Size     int64      // bytes; -1 is unknown
	Product  string     // version of nsys that wrote the export
	Schema   string     // its version
	Host     string     // the profiled one; "" is unknown
	Absolute bool       // times are Unix ns; else they count from the start of the session
	Start    trace.Time // of the session, if Absolute
	Duration int64      // of the session, ns; -1 is unknown
	// GraphMode is how CUDA graphs were traced: "Node", "Graph"; "" is unknown.
	GraphMode string
	Driver    string // version of the driver of the GPUs; "" is unknown
	// PartialTables and PartialTimes are the limits of the export; "" is none.
	PartialTables, PartialTimes string
}

// A Trace is a PyTorch trace, or another trace in Chrome's format.
type Trace struct {
	File     string
	Size     int64  // bytes; -1 is unknown
	Producer string // "PyTorch profiler", "rocpd", or "Chrome JSON" for others
	Schema   string // version; "" is unknown
	Runtime  string // "CUDA 12.9"; "" is unknown
	Recorded string // besides events: "shapes, stacks"
	Host     string // "" is unknown
	Backend  string // of torch.distributed; "" is unknown
	Absolute bool   // times are Unix ns
}

// A Process is a recorded process, or several of one name without further information.
type Process struct {
	File, Name  string
	Is          profile.Identity
	N           int64
	PID         int64   // 0 is unknown, or there are several
	World       int32   // ranks in all; -1 is unknown
	GPUs        []int64 // GPUs that it could use, in any order
	Events      int64   // -1 is not counted
	First, Last trace.Time
	Timed       bool
	Steps       int64 // -1 is not counted
	Collectives int64 // -1 is not counted
}

// Devices are the accelerators of one model that a file describes.
type Devices struct {
	File, Name string
	IDs        []int64
}

// A Table is a table of an export.
type Table struct {
	File, Name  string
	Rows        int64 // upper bound; -1 is unknown
	Read        bool  // by sgtrace
	First, Last trace.Time
	Timed       bool
}

// A Category is the number of events of one category in a trace.
type Category struct {
	File, Name  string
	Events      int64
	First, Last trace.Time
	Timed       bool
}

// A Message is a warning from a profiler.
type Message struct {
	File     string
	Time     trace.Time
	Timed    bool
	Severity string // "warning", "error"
	PID      int64  // -1 is unknown
	Text     string
}

// A Log is the log of a server or of a kernel, metrics of servers and devices, or a process's dump of the
// collectives in flight. -1 means that the format has no such number.
type Log struct {
	File, Format string
	Servers      []string // "node1 prefill"; nameless ones are omitted
	Ranks        []string // "DP1 TP0", "GPU 3"
	Lines        int64
	Strange      int64 // lines of unknown kinds
	Samples      int64
	Events       int64
	Collectives  int64 // that the process entered and that are still in the dump
	Pending      int64 // pending ones among them
	First, Last  trace.Time
	Timed        bool
	NotKnown     []string // "zone: taken for UTC"
}

// AddProcess adds a process of an export. The processes of some exports include everything that ran meanwhile,
// even compilers: those without traced events share one row per file.
func (v *Inventory) AddProcess(p Process) {
	if p.Events == 0 && p.Is.Rank == trace.NoRank && len(p.GPUs) == 0 {
		if i, ok := v.idle[p.File]; ok {
			v.Processes[i].N++
			v.Processes[i].PID, v.Processes[i].Name = 0, Idle
			return
		}
		if v.idle == nil {
			v.idle = map[string]int{}
		}
		v.idle[p.File] = len(v.Processes)
	}
	v.Processes = append(v.Processes, p)
}

// Idle is the name of a row of processes without traced events.
const Idle = "(others, without events)"

// AddProfiles adds a file and its profiled processes, as they describe themselves; are identifies each profile,
// or each of its parts. about has the rest: size, producer.
func (v *Inventory) AddProfiles(about Trace, profiles []*profile.Profile, are [][]profile.Identity) {
	for i, p := range profiles {
		about.Host, about.Backend, about.Absolute = p.Meta.Host, p.Meta.Backend, p.Meta.Origin == profile.OriginUnix
		for _, is := range are[i] {
			x := Process{File: about.File, Is: is, N: 1, PID: p.Meta.PID, World: p.Meta.WorldSize, Events: int64(p.Total),
				First: p.First, Last: p.Last, Timed: about.Absolute && p.Total > 0, Steps: int64(len(p.Steps)), Collectives: int64(p.Collectives.Len())}
			if p.Meta.GPU >= 0 {
				x.GPUs = []int64{int64(p.Meta.GPU)}
			}
			v.AddProcess(x)
		}
		for _, d := range p.Meta.Devices {
			if i == 0 { // every process lists those of the machine
				v.AddDevice(about.File, d.Name, d.ID)
			}
		}
	}
	v.Traces = append(v.Traces, about)
}

// AddDevice adds an accelerator.
func (v *Inventory) AddDevice(file, name string, id int64) {
	for i := range v.Devices {
		if x := &v.Devices[i]; x.File == file && x.Name == name {
			x.IDs = append(x.IDs, id)
			return
		}
	}
	v.Devices = append(v.Devices, Devices{file, name, []int64{id}})
}
