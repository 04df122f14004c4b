package nsysexport

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// known is the information in an export about its processes and threads, by number. As there may be very many,
// lookups must not search through all of them.
type known struct {
	processes map[int32]string        // names by pid
	threads   map[rows.Thread]string  // names by a Thread without its name
	devices   map[int32][]rows.Device // of CUDA
	usesNCCL  map[int32]bool          // has annotations of NCCL
	ranks     map[int32]int32         // in MPI
	worldSize int32                   // a lower bound; -1 is unknown
	gpus      []profile.Device
}

// newKnown gathers the information from an export. It reads the names that NVTX gives.
func newKnown(src *rows.Source) *known {
	k := &known{processes: map[int32]string{}, threads: map[rows.Thread]string{}, devices: map[int32][]rows.Device{},
		usesNCCL: src.NCCLUsers(), ranks: map[int32]int32{}, worldSize: -1}
	for _, p := range src.Processes {
		k.processes[p.PID] = p.Name
	}
	for _, threads := range [][]rows.Thread{src.Threads, src.NamedThreads()} {
		for _, t := range threads {
			if id := (rows.Thread{PID: t.PID, TID: t.TID}); k.threads[id] == "" {
				k.threads[id] = t.Name
			}
		}
	}
	for _, d := range src.Meta.Devices {
		k.devices[d.PID] = append(k.devices[d.PID], d)
	}
	for _, rank := range src.Ranks {
		k.ranks[rank.PID] = rank.Rank
		k.worldSize = max(k.worldSize, rank.Rank+1) // only a lower bound: there may be other nodes
	}
	for _, gpu := range src.Meta.GPUs {
		k.gpus = append(k.gpus, profile.Device{ID: gpu.ID, Name: gpu.Name, UUID: gpu.UUID})
	}
	return k
}

// processName returns the name of a process, without the directory of its program. If the program's name says
// nothing, it returns the main thread's name, by which programs rename themselves.
func (k *known) processName(pid int32) string {
	name := k.processes[pid]
	if strings.Contains(name, "/") {
		name = path.Base(name)
	}
	thread := k.threads[rows.Thread{PID: pid, TID: pid}]
	if name == launcher || strings.Contains(thread, "::") {
		return cmp.Or(thread, name)
	}
	return cmp.Or(name, thread)
}

// gpuOf returns the machine's number of the GPU that is a device of a process; -1 is unknown.
func (k *known) gpuOf(pid, device int32) int32 {
	for _, d := range k.devices[pid] {
		if d.Device == device {
			return int32(d.GPU)
		}
	}
	return -1
}

// onlyGPU returns the only GPU that a process could use, -1 if there are several or none is known.
func (k *known) onlyGPU(pid int32) int32 {
	gpu := int32(-1)
	for _, d := range k.devices[pid] {
		switch {
		case int32(d.GPU) == gpu:
		case gpu >= 0:
			return -1
		default:
			gpu = int32(d.GPU)
		}
	}
	return gpu
}

// commsByProcess returns the communicators by pid.
func commsByProcess(src *rows.Source) map[int32][]rows.Comm {
	by := map[int32][]rows.Comm{}
	for _, c := range src.Comms() {
		by[c.PID] = append(by[c.PID], c)
	}
	return by
}

// hints returns hints at the rank of a process: its communicators of NCCL, the largest first, then the
// environment.
func (r *profiler) hints(pid int32) []naming.Hint {
	var hints []naming.Hint
	for _, c := range r.comms()[pid] {
		if c.Rank < c.Size {
			hints = append(hints, naming.Hint{From: "NCCL", Rank: c.Rank, Size: c.Size})
		}
	}
	slices.SortStableFunc(hints, func(a, b naming.Hint) int { return cmp.Compare(b.Size, a.Size) })
	return append(hints, r.src.Environment...)
}
