package rows

import (
	"cmp"
	"slices"
)

// A Process is one that was profiled, or ran meanwhile.
type Process struct {
	PID  int32
	Name string
}

// A Thread is one that has a name.
type Thread struct {
	PID, TID int32
	Name     string
}

// A Stream is a CUDA stream, by the process and context that made it.
type Stream struct {
	PID      int32
	Context  int64
	Stream   int64
	Priority int32
	Default  bool // the null stream
}

// A Rank is the rank of a process in MPI_COMM_WORLD.
type Rank struct {
	PID  int32
	Rank int32
}

var gpuTable = tableSpec{
	names: []string{"TARGET_INFO_GPU"},
	columns: []column{
		{name: "id", or: "deviceId", none: -1, need: true}, {name: "name"}, {name: "uuid"}, {name: "busLocation"},
	},
}

var deviceTable = tableSpec{
	names: []string{"TARGET_INFO_CUDA_DEVICE"},
	columns: []column{
		{name: "pid", none: -1, need: true}, {name: "cudaId", none: -1, need: true},
		{name: "gpuId", none: -1}, {name: "uuid"},
	},
}

var processTable = tableSpec{
	names:   []string{"PROCESSES"},
	columns: []column{{name: "globalPid", none: noID, need: true}, {name: "name", need: true}},
}

var threadTable = tableSpec{
	names:   []string{"ThreadNames"},
	columns: []column{{name: "globalTid", none: noID, need: true}, {name: "nameId", need: true}},
}

var streamTable = tableSpec{
	names: []string{"TARGET_INFO_CUDA_STREAM"},
	columns: []column{
		{name: "processId", none: -1, need: true}, {name: "contextId"}, {name: "streamId", need: true},
		{name: "priority"},
	},
}

// nullStream tells which stream is the default one. The newer table has that of
// every context.
var nullStream = tableSpec{
	names: []string{"TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM"},
	columns: []column{
		{name: "processId", none: -1, need: true}, {name: "contextId"}, {name: "nullStreamId", or: "streamId", need: true},
	},
}

var mpiRanks = tableSpec{
	names:   []string{"MPI_RANKS"},
	columns: []column{{name: "globalPid", or: "globalTid", none: noID, need: true}, {name: "rank", none: -1, need: true}},
}

// readTarget reads who was profiled.
func (s *Source) readTarget(c *connection) {
	m := &s.Meta
	s.scanOn(c, &gpuTable, func(cur *cursor) bool {
		m.GPUs = append(m.GPUs, GPU{cur.int(0), cur.text(1), cur.text(2), cur.text(3)})
		return true
	})
	s.scanOn(c, &deviceTable, func(cur *cursor) bool {
		m.Devices = append(m.Devices, Device{int32(cur.int(0)), int32(cur.int(1)), cur.int(2), cur.text(3)})
		return true
	})
	s.readProcesses(c)
	s.scanOn(c, &streamTable, func(cur *cursor) bool {
		s.Streams = append(s.Streams, Stream{int32(cur.int(0)), cur.int(1), cur.int(2), int32(cur.int(3)), false})
		return true
	})
	listed := map[Stream]int{} // by pid, context and number
	for i, x := range slices.Backward(s.Streams) {
		listed[Stream{PID: x.PID, Context: x.Context, Stream: x.Stream}] = i
	}
	s.scanOn(c, &nullStream, func(cur *cursor) bool {
		id := Stream{PID: int32(cur.int(0)), Context: cur.int(1), Stream: cur.int(2)}
		i, ok := listed[id]
		if !ok {
			i = len(s.Streams)
			listed[id], s.Streams = i, append(s.Streams, id)
		}
		s.Streams[i].Default = true
		return true
	})
	s.scanOn(c, &mpiRanks, func(cur *cursor) bool {
		s.Ranks = append(s.Ranks, Rank{pidOf(cur.int(0)), int32(cur.int(1))})
		return true
	})
}

// readProcesses reads processes and the names of threads. One that called exec is
// listed once more, under its last name ("nsys-launcher", then the program).
func (s *Source) readProcesses(c *connection) {
	last := map[int32]int{}
	s.scanOn(c, &processTable, func(cur *cursor) bool {
		p := Process{pidOf(cur.int(0)), s.Options.Syms.Name(cur.textSym(1))} // without credentials
		if i, ok := last[p.PID]; ok {
			if p.Name != "" {
				s.Processes[i] = p
			}
			return true
		}
		last[p.PID] = len(s.Processes)
		s.Processes = append(s.Processes, p)
		return true
	})
	slices.SortStableFunc(s.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	s.scanOn(c, &threadTable, func(cur *cursor) bool {
		id := cur.int(0)
		s.Threads = append(s.Threads, Thread{pidOf(id), tidOf(id), s.Options.Syms.Name(cur.name(1))})
		return true
	})
	slices.SortStableFunc(s.Threads, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID))
	})
}
