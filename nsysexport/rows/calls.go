package rows

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Class is the library that a call goes to.
type Class uint8

const (
	ClassRuntime  Class = iota // CUDA runtime
	ClassDriver                // CUDA driver
	ClassOS                    // operating system runtime
	ClassCUDNN                 // cuDNN
	ClassCUBLAS                // cuBLAS
	ClassMPI                   // MPI
	ClassOverhead              // the profiler's own
)

// String returns the name of the library.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

var classNames = [...]string{"CUDA runtime", "CUDA driver", "OS runtime", "cuDNN", "cuBLAS", "MPI", "profiler overhead"}

// A Call is a call of a thread into a library. 40 bytes.
type Call struct {
	Start, End trace.Time
	PID, TID   int32     // -1 is unknown
	Name       trace.Sym // as in the file: "cudaLaunchKernel_v7000"
	// Correlation joins the call to the operations of the same process that it requested ([Place]); 0 is none.
	Correlation uint32
	Return      int32 // for CUDA, 0 is success and [profile.Failed] names other values; or profile.UnknownResult
	Class       Class
}

const (
	callStart = iota
	callEnd
	callTID
	callName
	callCorrelation
	callReturn
	callClass
)

func callColumns(name column) []column {
	return []column{
		callStart:       {name: "start", need: true},
		callEnd:         {name: "end", need: true},
		callTID:         {name: "globalTid", none: noID},
		callName:        name,
		callCorrelation: {name: "correlationId"},
		callReturn:      {name: "returnValue", none: profile.UnknownResult},
		callClass:       {name: "eventClass"},
	}
}

var apiTable = tableSpec{
	names:   []string{"CUPTI_ACTIVITY_KIND_RUNTIME"},
	columns: callColumns(column{name: "nameId", need: true}),
}

// driverTable only exists in exports with a separate table of driver calls.
var driverTable = tableSpec{
	names:   []string{"CUPTI_ACTIVITY_KIND_DRIVER"},
	columns: apiTable.columns,
}

var osTable = tableSpec{names: []string{"OSRT_API"}, columns: apiTable.columns}

// libraryTables are the calls of other libraries, which few exports have.
var libraryTables = []struct {
	spec  tableSpec
	class Class
}{
	{tableSpec{names: []string{"CUDNN_EVENTS"}, columns: callColumns(column{name: "nameId", or: "textId", need: true})}, ClassCUDNN},
	{tableSpec{names: []string{"CUBLAS_EVENTS"}, columns: callColumns(column{name: "nameId", or: "textId", need: true})}, ClassCUBLAS},
	{tableSpec{names: []string{"MPI_P2P_EVENTS"}, columns: callColumns(column{name: "textId", or: "nameId", need: true})}, ClassMPI},
	{tableSpec{names: []string{"MPI_COLLECTIVES_EVENTS"}, columns: callColumns(column{name: "textId", or: "nameId", need: true})}, ClassMPI},
	{tableSpec{names: []string{"MPI_START_WAIT_EVENTS"}, columns: callColumns(column{name: "textId", or: "nameId", need: true})}, ClassMPI},
	{tableSpec{names: []string{"MPI_OTHER_EVENTS"}, columns: callColumns(column{name: "textId", or: "nameId", need: true})}, ClassMPI},
	{tableSpec{names: []string{"PROFILER_OVERHEAD"}, columns: callColumns(column{name: "nameId", need: true})}, ClassOverhead},
	{tableSpec{names: []string{"CUPTI_ACTIVITY_KIND_OVERHEAD"}, columns: callColumns(column{name: "nameId", need: true})}, ClassOverhead},
}

// API yields the calls of the CUDA runtime and driver.
func (w *Window) API(yield func(*Call) bool) {
	if w.calls(w.calling(&apiTable), ClassRuntime, yield) {
		w.calls(w.calling(&driverTable), ClassDriver, yield)
	}
}

// OS yields the calls of the operating system's runtime.
func (w *Window) OS(yield func(*Call) bool) { w.calls(w.bounded(&osTable), ClassOS, yield) }

// Libraries yields the calls of other libraries, and the profiler's overhead.
func (s *Source) Libraries(yield func(*Call) bool) {
	for i := range libraryTables {
		if t := &libraryTables[i]; !s.calls(&t.spec, t.class, yield) {
			return
		}
	}
}

// eventBacktrace is the class of rows that repeat a call for its recorded stack (--cudabacktrace); in older
// versions of nsys, the call itself has none.
const eventBacktrace = 67

// calls yields the calls of one table. Runtime and driver share a table, where a column distinguishes them; in
// other tables that column has other numbers. It returns false if yield does.
func (s *Source) calls(spec *tableSpec, class Class, yield func(*Call) bool) (more bool) {
	var call Call
	return s.scan(spec, func(c *cursor) bool {
		of := c.int(callClass)
		if class == ClassRuntime && of == eventBacktrace {
			return true
		}
		id := c.int(callTID)
		call.Start, call.End, call.PID, call.TID = c.time(callStart), c.time(callEnd), pidOf(id), tidOf(id)
		call.Name, call.Correlation, call.Class = c.name(callName), uint32(c.int(callCorrelation)), class
		call.Return = int32(c.int(callReturn))
		if class == ClassRuntime && of == 1 {
			call.Class = ClassDriver
		}
		return yield(&call)
	})
}

// APIName returns the name of a call without the CUDA version in which its signature changed, as nsys stats
// prints it: it drops "_v7000" but not "_v11060", because nsys looks at the last six characters only.
func APIName(name string) string {
	const suffix = len("_v7000")
	i := len(name) - suffix
	if i <= 0 || name[i:i+2] != "_v" {
		return name
	}
	for _, c := range []byte(name[i+2:]) {
		if c < '0' || c > '9' {
			return name
		}
	}
	return name[:i]
}

// Ids of processes and threads are packed into 64 bits: 8 bits of hardware, 8 of a virtual machine, 24 of the
// pid, 24 of the tid. SQLite stores them as signed numbers, but the sign bit belongs to the hardware.
const (
	idBits = 24
	idMask = 1<<idBits - 1
	// noID is the value of a column without an id; no id of the file is -1, since a thread 0xFFFFFF of a process
	// 0xFFFFFF does not exist.
	noID = -1
)

// pidOf returns the process of a packed id, -1 if the id is missing or stands for a whole machine.
func pidOf(id int64) int32 {
	if id == noID || uint64(id)<<16 == 0 {
		return -1
	}
	return int32(id >> idBits & idMask)
}

// tidOf returns the thread of a packed id, -1 if it is missing.
func tidOf(id int64) int32 {
	if id == noID || uint64(id)<<16 == 0 {
		return -1
	}
	return int32(id & idMask)
}
