package nsysexport

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// ReadProfiles reads an export as one profile for each process that used a GPU,
// called an API that was traced, or was annotated, and one for what was sampled of
// the machine. The options bound what is read as those of a reader of traces do;
// filter says which events are kept.
func ReadProfiles(path string, opt Options, filter *profile.Filter) ([]*profile.Profile, error) {
	opt.Brief = filter.Args == profile.ArgsNone
	src, err := Open(path, opt)
	if err != nil {
		return nil, err
	}
	r := profiler{src: src, filter: filter, syms: opt.Syms, put: opt.Args.Appender(), profiles: map[int32]*process{},
		cats: map[string]trace.Sym{}, keys: map[string]trace.Sym{}}
	r.kernels()
	r.memory()
	r.calls()
	r.ranges()
	r.samples()
	err = src.Close()
	var profiles []*profile.Profile
	for _, f := range r.profiles {
		profiles = append(profiles, f.Profile)
	}
	slices.SortFunc(profiles, func(a, b *profile.Profile) int { return cmp.Compare(a.Rows[0].PID, b.Rows[0].PID) })
	return profiles, err
}

type profiler struct {
	src      *Source
	filter   *profile.Filter
	syms     *trace.Symbols
	put      *trace.ArgsAppender
	profiles map[int32]*process // by pid
	cats     map[string]trace.Sym
	keys     map[string]trace.Sym
	list     trace.ArgList
}

// process is the capture of one process under way.
type process struct {
	*profile.Profile
	rows map[profile.Row]int32
}

// machine is the pid of what belongs to no process.
const machine = -1

// file returns the capture of a process.
func (r *profiler) file(pid int32) *process {
	f, ok := r.profiles[pid]
	if ok {
		return f
	}
	meta := profile.Meta{Rank: -1, WorldSize: -1, Host: r.src.Meta.Host}
	if r.src.Meta.Absolute {
		meta.Origin = profile.OriginUnix
	}
	for _, rank := range r.src.Ranks {
		if rank.PID == pid {
			meta.Rank, meta.WorldSize = rank.Rank, int32(len(r.src.Ranks))
		}
	}
	for _, c := range r.src.Comms() {
		if c.PID == pid && c.Size > meta.WorldSize {
			meta.Rank, meta.WorldSize = c.Rank, c.Size // of the largest communicator
		}
	}
	f = &process{Profile: &profile.Profile{Name: r.src.Name, Meta: meta}, rows: map[profile.Row]int32{}}
	r.profiles[pid] = f
	// The first row names the process even if nothing lies on it.
	f.row(profile.Row{Kind: profile.RowThread, PID: int64(pid), PIDText: strconv.Itoa(int(pid)), TID: int64(pid),
		TIDText: strconv.Itoa(int(pid)), Process: r.processName(pid), Name: r.threadName(pid, pid)})
	return f
}

func (f *process) row(row profile.Row) int32 {
	i, ok := f.rows[row]
	if !ok {
		i = int32(len(f.Rows))
		f.rows[row] = i
		f.Rows = append(f.Rows, row)
	}
	return i
}

func (r *profiler) processName(pid int32) string {
	for _, p := range r.src.Processes {
		if p.PID == pid {
			return p.Name
		}
	}
	return ""
}

func (r *profiler) threadName(pid, tid int32) string {
	for _, t := range r.src.Threads {
		if t.PID == pid && t.TID == tid {
			return fmt.Sprintf("thread %d (%s)", tid, t.Name)
		}
	}
	return fmt.Sprintf("thread %d", tid)
}

// thread returns the row of a thread, or of one of its layers: NVTX ranges of a
// domain have a row of their own.
func (r *profiler) thread(f *process, pid, tid int32, layer string) int32 {
	row := profile.Row{Kind: profile.RowThread, PID: int64(pid), PIDText: strconv.Itoa(int(pid)), TID: int64(tid),
		TIDText: strconv.Itoa(int(tid)) + layer, Process: r.processName(pid), Name: r.threadName(pid, tid) + layer}
	return f.row(row)
}

func (f *process) stream(p *Place) int32 {
	return f.row(profile.Row{Kind: profile.RowStream, PID: int64(p.Device), PIDText: strconv.Itoa(int(p.Device)),
		TID: int64(p.Stream), TIDText: strconv.FormatUint(uint64(p.Stream), 10), Name: fmt.Sprintf("stream %d", p.Stream)})
}

// add adds an event, unless the filter leaves it out, and returns its index.
func (r *profiler) add(f *process, row int32, cat string, name trace.Sym, from, to trace.Time, args func()) int32 {
	if f.Total == 0 || from < f.First {
		f.First = from
	}
	f.Last = max(f.Last, to)
	f.Total++
	w := r.filter
	if w.Cats != nil && !slices.Contains(w.Cats, cat) || int64(to-from) < w.MinDur || w.Names != nil && !w.Names.MatchString(r.syms.Name(name)) {
		return profile.NoEvent
	}
	if _, ok := r.cats[cat]; !ok {
		r.cats[cat] = r.syms.Intern(cat)
	}
	s := trace.Slice{Time: from, Dur: int64(to - from), Track: trace.TrackID(row), Name: name, Cat: r.cats[cat]}
	if w.Args != profile.ArgsNone {
		r.list = r.list[:0]
		args()
		s.Args = r.put.Put(r.list)
	}
	f.Events = append(f.Events, s)
	return int32(len(f.Events) - 1)
}

func (r *profiler) key(name string) trace.Sym {
	k, ok := r.keys[name]
	if !ok {
		k = r.syms.Intern(name)
		r.keys[name] = k
	}
	return k
}

func (r *profiler) int(key string, v int64) { r.list = r.list.Int(r.key(key), v) }

func (r *profiler) text(key, v string) {
	if v != "" {
		r.list = r.list.String(r.key(key), v)
	}
}

func (r *profiler) dims(key string, v [3]uint32) {
	var elems trace.ArgList
	for _, n := range v {
		elems = elems.Int(0, int64(n))
	}
	r.list = r.list.Array(r.key(key), elems)
}

// work adds what a device did, and ties it to the call that asked for it.
func (r *profiler) work(p *Place, cat string, name trace.Sym, from, to trace.Time, args func()) int32 {
	f := r.file(p.PID)
	row := f.stream(p)
	event := r.add(f, row, cat, name, from, to, func() {
		r.int("device", int64(p.Device))
		r.int("context", int64(p.Context))
		r.int("stream", int64(p.Stream))
		r.int("correlation", int64(p.Correlation))
		args()
	})
	if p.Correlation != 0 {
		f.Work = append(f.Work, profile.Link{Event: event, Row: row, Correlation: int64(p.Correlation)})
	}
	return event
}

func (r *profiler) kernels() {
	launches := r.src.Launches()
	communicates := map[trace.Sym]bool{}
	for k := range r.src.Kernels {
		event := r.work(&k.Place, "kernel", k.Name, k.Start, k.End, func() {
			if k.Launch != 0 && int(k.Launch) < len(launches) {
				l := &launches[k.Launch]
				r.dims("grid", l.Grid)
				r.dims("block", l.Block)
				r.int("registers per thread", int64(l.Registers))
				r.int("shared memory", int64(l.StaticShared)+int64(l.DynamicShared))
			}
			if k.Node != 0 {
				r.list = r.list.Uint(r.key("graph node id"), k.Node)
			}
		})
		is, ok := communicates[k.Name]
		if !ok {
			is = profile.IsCommunication(r.syms.Name(k.Name))
			communicates[k.Name] = is
		}
		if is {
			f := r.file(k.PID)
			f.Collectives = append(f.Collectives, profile.Collective{Event: event, Row: f.stream(&k.Place), Time: k.Start, Dur: int64(k.End - k.Start),
				Name: k.Name, OnGPU: true, Seq: -1, In: -1, Out: -1, GroupSize: -1})
		}
	}
	// Of graphs that were traced as a whole, this is all the time there is.
	for g := range r.src.GraphRuns {
		if g.Timed {
			r.work(&g.Place, "kernel", r.syms.Intern(fmt.Sprintf("CUDA graph %d", g.Graph)), g.Start, g.End, func() { r.int("graph exec id", int64(g.Exec)) })
		}
	}
}

func (r *profiler) memory() {
	for c := range r.src.Memcpys {
		r.work(&c.Place, "gpu_memcpy", r.syms.Intern("Memcpy "+c.Kind.String()), c.Start, c.End, func() { r.int("bytes", int64(c.Bytes)) })
	}
	for c := range r.src.Memsets {
		r.work(&c.Place, "gpu_memset", r.syms.Intern("Memset"), c.Start, c.End, func() { r.int("bytes", int64(c.Bytes)) })
	}
}

// calls adds the calls of threads into CUDA, its libraries and the operating system.
func (r *profiler) calls() {
	names := map[trace.Sym]trace.Sym{}
	add := func(cat string) func(c *Call) bool {
		return func(c *Call) bool {
			name, ok := names[c.Name]
			if !ok {
				name = r.syms.Intern(APIName(r.syms.Name(c.Name)))
				names[c.Name] = name
			}
			f := r.file(c.PID)
			row := r.thread(f, c.PID, c.TID, "")
			event := r.add(f, row, cat, name, c.Start, c.End, func() {
				if c.Correlation != 0 {
					r.int("correlation", int64(c.Correlation))
				}
				if c.Return != 0 {
					r.int("return value", int64(c.Return))
				}
			})
			if c.Correlation != 0 {
				f.Launches = append(f.Launches, profile.Link{Event: event, Row: row, Correlation: int64(c.Correlation)})
			}
			return true
		}
	}
	r.src.API(add("cuda_runtime"))
	r.src.OS(add("osrt"))
	r.src.Libraries(add("library"))
}

// ranges adds NVTX annotations: ranges that nest on a thread on a row beside it,
// ranges that may end on another thread on rows of their own, marks as instants.
func (r *profiler) ranges() {
	for n := range r.src.Ranges {
		f := r.file(n.PID)
		domain := cmp.Or(r.syms.Name(n.Domain), "NVTX")
		switch {
		case n.Kind == MarkInstant:
			row := r.thread(f, n.PID, n.TID, " "+domain)
			f.Instants = append(f.Instants, trace.Instant{Time: n.Start, Track: trace.TrackID(row), Name: n.Text, Args: n.Args})
			f.Total++
		default:
			row := r.thread(f, n.PID, n.TID, " "+domain)
			if n.Kind == MarkStartEnd {
				row = f.row(profile.Row{Kind: profile.RowAsync, PID: int64(n.PID), PIDText: strconv.Itoa(int(n.PID)), Name: domain + " start/end ranges"})
			}
			event := r.add(f, row, "nvtx", n.Text, n.Start, n.End, func() {
				r.text("category", r.syms.Name(n.Category))
				if n.Open {
					r.list = r.list.Bool(r.key("never closed"), true)
				}
				r.list = r.list.Extend(n.Args)
			})
			if kind, batch, ok := profile.ParseStep(r.syms.Name(n.Text)); ok && !n.Open {
				f.Steps = append(f.Steps, profile.Step{Event: event, Row: row, Time: n.Start, Dur: int64(n.End - n.Start), Name: n.Text, Kind: kind, Batch: batch})
			}
		}
	}
}

// samples adds the metrics of GPUs and network cards as counters.
func (r *profiler) samples() {
	rows := map[int32]int32{}
	for s, metrics := range r.src.Samples {
		f := r.file(machine)
		row, ok := rows[s.Metric]
		if !ok {
			m := &metrics[s.Metric]
			row = f.row(profile.Row{Kind: profile.RowCounter, PIDText: m.Source, Process: m.Source, Name: m.Source + " " + m.Name})
			rows[s.Metric] = row
		}
		if f.Total == 0 || s.Time < f.First {
			f.First = s.Time
		}
		f.Last = max(f.Last, s.Time)
		f.Total++
		f.Samples = append(f.Samples, trace.Sample{Time: s.Time, Value: s.Value, Track: trace.TrackID(row)})
	}
}
