package rows

import (
	"cmp"
	"slices"
)

// A Process is a process that was profiled, or that ran in the meantime.
type Process struct {
	PID  int32
	Name string
}

// A Thread is a named thread.
type Thread struct {
	PID, TID int32
	Name     string
}

// A Rank is the rank of a process in MPI_COMM_WORLD.
type Rank struct {
	PID  int32
	Rank int32
}

var gpuTable = tableSpec{
	names: []string{"TARGET_INFO_GPU"},
	columns: []column{
		{name: "id", or: "deviceId", none: -1, need: true}, {name: "name"}, {name: "uuid"},
	},
}

var deviceTable = tableSpec{
	names: []string{"TARGET_INFO_CUDA_DEVICE"},
	columns: []column{
		{name: "pid", none: -1, need: true}, {name: "cudaId", none: -1, need: true},
		{name: "gpuId", none: -1},
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

// streamTables show which processes have CUDA streams.
var streamTables = []tableSpec{
	{names: []string{"TARGET_INFO_CUDA_STREAM"}, columns: []column{{name: "processId", none: -1, need: true}, {name: "streamId", need: true}}},
	{names: []string{"TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM"},
		columns: []column{{name: "processId", none: -1, need: true}, {name: "nullStreamId", or: "streamId", need: true}}},
}

var mpiRanks = tableSpec{
	names:   []string{"MPI_RANKS"},
	columns: []column{{name: "globalPid", or: "globalTid", none: noID, need: true}, {name: "rank", none: -1, need: true}},
}

// readTarget reads the facts about the machine and the profiled processes.
func (s *Source) readTarget(c *connection) {
	m := &s.Meta
	s.scanOn(c, &gpuTable, func(cur *cursor) bool {
		m.GPUs = append(m.GPUs, GPU{cur.int(0), cur.text(1), cur.text(2)})
		return true
	})
	s.scanOn(c, &deviceTable, func(cur *cursor) bool {
		m.Devices = append(m.Devices, Device{int32(cur.int(0)), int32(cur.int(1)), cur.int(2)})
		return true
	})
	s.readDevices(c)
	s.readProcesses(c)
	s.StreamUsers = map[int32]bool{}
	for i := range streamTables {
		s.scanOn(c, &streamTables[i], func(cur *cursor) bool {
			s.StreamUsers[int32(cur.int(0))] = true
			return true
		})
	}
	s.scanOn(c, &mpiRanks, func(cur *cursor) bool {
		s.Ranks = append(s.Ranks, Rank{pidOf(cur.int(0)), int32(cur.int(1))})
		return true
	})
}

// readProcesses reads processes and the names of threads. A process that called exec is listed again under its
// last name ("nsys-launcher", then the program).
func (s *Source) readProcesses(c *connection) {
	last := map[int32]int{}
	s.scanOn(c, &processTable, func(cur *cursor) bool {
		p := Process{pidOf(cur.int(0)), s.Options.Syms.Name(cur.textSym(1))} // symbols come without credentials
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
