package nsysexport

import (
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// readProfiles reads an export as one profile for each process that used a GPU, called a traced API, or was
// annotated, and one for the samples of the machine. opt limits the rows to read; filter selects the events to keep.
func readProfiles(path string, opt rows.Options, filter *profile.Filter) ([]*profile.Profile, error) {
	opt.Brief = filter.Args == profile.ArgsNone || filter.IndexOnly
	src, err := rows.Open(path, opt)
	if err != nil {
		return nil, err
	}
	r := newProfiler(src)
	r.filter = filter
	r.sparse = filter.Cats != nil || filter.Names != nil || filter.MinDur != 0 || filter.From != 0 || filter.To != 0 || filter.IndexOnly
	profiles := r.read()
	return profiles, src.Close()
}

// profiler makes profiles of an export. It reads tables concurrently, each into pieces of its own, one per
// process, which are joined at the end. The order of events depends on the order of the tables, not on which is
// read first.
type profiler struct {
	src      *rows.Source
	filter   *profile.Filter
	sparse   bool // the filter may reject events
	syms     *trace.Symbols
	keys     argKeys
	profiles map[int32]*process // by pid
	readers  []*reader          // in the order of tables
	known    func() *known
	comms    func() map[int32][]rows.Comm // by pid
}

func newProfiler(src *rows.Source) *profiler {
	return &profiler{src: src, syms: src.Options.Syms, profiles: map[int32]*process{},
		known: sync.OnceValue(func() *known { return newKnown(src) }),
		comms: sync.OnceValue(func() map[int32][]rows.Comm { return commsByProcess(src) })}
}

// process is the profile of a process while it is being made.
type process struct {
	Profile  *profile.Profile
	pid      int32 // or machine
	rows     map[profile.Row]int32
	launches []profile.Launch
	work     []work   // including work that the filter rejects; empty if it rejects nothing
	nodes    []uint64 // graph nodes, by collective
}

// machine is the pid of events that belong to no process.
const machine = -1

// read reads all tables.
func (r *profiler) read() []*profile.Profile {
	r.keys.init(r.syms)
	tables := r.tables()
	next := make(chan int, len(tables))
	for i := range tables {
		r.readers = append(r.readers, newReader(r))
		next <- i
	}
	close(next)
	workers := r.src.Options.Workers
	if workers <= 0 {
		workers = min(runtime.GOMAXPROCS(0), 4)
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				tables[i](r.readers[i])
			}
		})
	}
	wg.Wait()
	reportMessages(r.src)
	return r.join()
}

// tables returns the readers of all tables that the filter asks for, in the order of events.
func (r *profiler) tables() []func(*reader) {
	if !r.filter.CollectivesOnly {
		return []func(*reader){
			(*reader).nccl, (*reader).kernels, (*reader).graphRuns, (*reader).copies, (*reader).syncs, (*reader).api, (*reader).libraries,
			(*reader).ranges, (*reader).osCalls, (*reader).scheds, (*reader).samples, (*reader).memory, (*reader).metrics,
		}
	}
	if !r.src.HasNCCL() {
		return []func(*reader){(*reader).collectives}
	}
	// Calls are needed for the NCCL information of what they launched, and ranges for steps.
	return []func(*reader){(*reader).collectives, (*reader).api, (*reader).ranges}
}

// join joins the pieces of each process.
func (r *profiler) join() []*profile.Profile {
	var pids []int32
	for _, rd := range r.readers {
		for _, p := range rd.pieces {
			if p.total > 0 {
				pids = append(pids, p.pid)
			}
		}
	}
	slices.Sort(pids)
	var profiles []*profile.Profile
	for _, pid := range slices.Compact(pids) {
		p := r.file(pid)
		var pieces []*piece
		for _, rd := range r.readers {
			if x := rd.byPID[pid]; x != nil && x.total > 0 {
				pieces = append(pieces, x)
				delete(rd.byPID, pid) // so that its memory can be freed
				rd.pieces[x.number] = nil
			}
		}
		p.add(pieces)
		r.findCollectives(p)
		p.Profile.PlaceCollectives(p.launches, nil)
		r.findGPUSteps(p)
		p.Profile.Meta.OnGPU = p.Profile.Meta.OnGPU || slices.ContainsFunc(p.Profile.Rows, func(row profile.Row) bool { return row.Kind == profile.RowStream })
		p.launches, p.work, p.nodes = nil, nil, nil
		profiles = append(profiles, p.Profile)
	}
	return profiles
}

// file returns the profile of a process, with the facts about it.
func (r *profiler) file(pid int32) *process {
	f, ok := r.profiles[pid]
	if ok {
		return f
	}
	known := r.known()
	meta := profile.Meta{Rank: -1, WorldSize: known.worldSize, Host: r.src.Meta.HostName(), PID: int64(max(pid, 0)), GPU: known.onlyGPU(pid),
		Hints: r.hints(pid), Devices: known.gpus}
	meta.OnGPU = meta.GPU >= 0 || r.src.StreamUsers[pid]
	if known.usesNCCL[pid] {
		meta.Backend = "nccl"
	}
	if driver := r.src.Meta.Driver; driver != "" {
		meta.Attributes = append(meta.Attributes, trace.Attribute{Key: profile.DriverVersion, Value: driver})
	}
	if r.src.Meta.Absolute {
		meta.Origin = profile.OriginUnix
	}
	if rank, ok := known.ranks[pid]; ok {
		meta.Rank = rank
	}
	f = &process{pid: pid, Profile: &profile.Profile{Name: r.src.Name, Meta: meta}, rows: map[profile.Row]int32{}}
	r.profiles[pid] = f
	// The first row names the process even if it has no events.
	f.row(profile.Row{Kind: profile.RowThread, PID: int64(pid), PIDText: strconv.Itoa(int(pid)), TID: int64(pid),
		TIDText: strconv.Itoa(int(pid)), Process: known.processName(pid), Name: r.threadName(pid, pid)})
	return f
}

func (f *process) row(row profile.Row) int32 {
	return order.At(f.rows, &f.Profile.Rows, row, func() profile.Row { return row })
}

// launcher is the name under which nsys lists a process that it started, before that ran the program.
const launcher = "nsys-launcher"

// threadName returns the name of a thread for its rows.
func (r *profiler) threadName(pid, tid int32) string {
	text := "thread " + strconv.Itoa(int(tid))
	if name := r.known().threads[rows.Thread{PID: pid, TID: tid}]; name != "" {
		text += " (" + name + ")"
	}
	return text
}
