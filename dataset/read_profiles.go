package dataset

import (
	"encoding/json"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A restoring restores the profiles of a capture.
type restoring struct {
	*Capture
	opt      *format.Options
	keep     *profile.Keeper
	keys     argKeys
	view     string
	profiles []*profile.Profile
	numbers  map[int64]int32 // index into profiles, by processes.process
}

// readProfiles returns the profiles of a capture as the reader of its format did, with the events that the
// filter keeps. It reads those of a view; "" is the usual one.
func (c *Capture) readProfiles(name, view string, opt *format.Options) ([]*profile.Profile, error) {
	r := &restoring{Capture: c, opt: opt, keep: profile.NewKeeper(&opt.Filter, opt.Syms), view: view, keys: newArgKeys(opt.Syms), numbers: map[int64]int32{}}
	steps := []func() error{func() error { return r.processes(name) }, r.threads, r.steps, r.collectives}
	if filter := &opt.Filter; !filter.IndexOnly {
		steps = append(steps, r.events, r.instants, r.counters)
	}
	if opt.Filter.Fingerprint {
		steps = append(steps, r.fingerprints)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.profiles, nil
}

func (r *restoring) processes(name string) error {
	in := r.openRows("processes-0", nil)
	number, view, first, last, records, meta := in.column("process"), in.column("view"), in.column("first"), in.column("last"), in.column("records"), in.column("meta")
	for in.next() {
		if string(view.text()) != r.view {
			continue
		}
		p := &profile.Profile{Name: name, First: trace.Time(first.int()), Last: trace.Time(last.int()), Total: int(records.int())}
		if in.err = json.Unmarshal(meta.text(), &p.Meta); in.err != nil {
			break
		}
		r.numbers[number.int()] = int32(len(r.profiles))
		r.profiles = append(r.profiles, p)
	}
	return in.close()
}

// profileOf returns the profile of a row; nil if it is in another view.
func (r *restoring) profileOf(process *cell) *profile.Profile {
	n, ok := r.numbers[process.int()]
	if !ok {
		return nil
	}
	return r.profiles[n]
}

// A spot locates rows of a file in profiles.
type spot struct {
	*restoring
	in              *rows
	process, thread *cell
	walked          *walkedSpot // locates rows without a process; nil skips them
}

func (r *restoring) spot(in *rows) spot {
	return spot{restoring: r, in: in, process: in.column("process"), thread: in.column("thread")}
}

// next moves to the next row of the view, and returns its profile and the row there.
func (s *spot) next() (p *profile.Profile, row int32, ok bool) {
	for s.in.next() {
		if s.walked != nil && s.process.int() < 0 {
			if p, row := s.walked.place(); p != nil {
				return p, row, true
			}
			continue
		}
		p := s.profileOf(s.process)
		if p == nil {
			continue
		}
		row := s.thread.int()
		if row < 0 || row >= int64(len(p.Rows)) {
			s.in.err = errDamaged
			return nil, 0, false
		}
		return p, int32(row), true
	}
	return nil, 0, false
}

func (r *restoring) threads() error {
	in := r.openRows("threads-0", nil)
	process, kind, part, pid, tid, pidText, tidText := in.column("process"), in.column("kind"), in.column("part"), in.column("pid"), in.column("tid"), in.column("pid_text"), in.column("tid_text")
	processName, name, labels, processSort, sort, folder, unit := in.column("process_name"), in.column("name"), in.column("labels"), in.column("process_sort"), in.column("sort"), in.column("folder"), in.column("unit")
	for in.next() {
		if p := r.profileOf(process); p != nil {
			p.Rows = append(p.Rows, profile.Row{Kind: profile.RowKind(rowKinds.number(kind.text())), Part: string(part.text()), PID: pid.int(), TID: tid.int(),
				PIDText: string(pidText.text()), TIDText: string(tidText.text()), Process: string(processName.text()), Name: string(name.text()),
				Labels: string(labels.text()), ProcessSort: processSort.int(), Sort: sort.int(), Folder: string(folder.text()), Unit: string(unit.text())})
		}
	}
	return in.close()
}

func (r *restoring) steps() error {
	if r.opt.Filter.CollectivesOnly {
		return nil
	}
	in := r.openRows("steps-0", r.opt.Syms)
	at, start, dur, name := r.spot(in), in.column("start"), in.column("dur"), in.column("name")
	kind, batch, onGPU := in.column("kind"), in.column("batch"), in.column("on_gpu")
	for p, row, ok := at.next(); ok; p, row, ok = at.next() {
		p.Steps = append(p.Steps, profile.Step{Event: profile.NoEvent, Row: row, Time: trace.Time(start.int()), Dur: dur.int(), Name: name.sym(),
			Kind: profile.StepKind(stepKinds.number(kind.text())), Batch: int32(batch.int()), OnGPU: onGPU.int() != 0})
	}
	return in.close()
}

// events reads the events that the filter keeps.
func (r *restoring) events() error {
	f := &r.opt.Filter
	if len(r.profiles) == 1 && f.Names == nil && f.MinDur == 0 && f.From == 0 && f.To == 0 {
		r.profiles[0].Events = memory.Make[profile.Slice](int(r.countEvents()))[:0]
	}
	for _, file := range eventFiles {
		if !file.wants(f) {
			continue
		}
		if err := r.eventsOf(file); err != nil {
			return err
		}
	}
	return nil
}

// countEvents returns the number of events in the files that the filter wants.
func (r *restoring) countEvents() (n int64) {
	for _, file := range eventFiles {
		if file.wants(&r.opt.Filter) {
			in := r.openRows(file.name, nil)
			n += in.left
			in.close()
		}
	}
	return n
}

// eventsOf reads the events of a file: the columns that calls and work share.
func (r *restoring) eventsOf(file *file) error {
	in := r.openRows(file.name, r.opt.Syms)
	at, start, dur, name := r.spot(in), in.column("start"), in.column("dur"), in.column("name")
	correlation, blocks, single := &cell{}, &cell{}, &cell{}
	if !file.operators {
		correlation, blocks, single = in.column("correlation"), in.column("blocks"), in.column("one_block")
	}
	category := r.categoryOf(file, in)
	if r.view == collectivesView {
		at.walked = r.walkedSpot(file, in)
	}
	arguments := r.argumentsOf(file, in)
	for p, row, ok := at.next(); ok; p, row, ok = at.next() {
		s := profile.Slice{Time: trace.Time(start.int()), Dur: max(0, dur.int()), Correlation: correlation.int(), Name: name.sym(), Cat: category(), Place: file.of.On(row)}
		if !r.keep.Keeps(s.Cat, s.Name, s.Time, s.End()) {
			continue
		}
		s.Args = arguments(s.Cat)
		if g := gridOf(blocks, single); g != 0 {
			p.Grids = append(p.Grids, profile.KernelGrid{Event: int32(len(p.Events)), Grid: g})
		}
		p.Events = append(p.Events, s)
	}
	return in.close()
}

// gridOf returns the grid of a kernel. Older datasets have only the threads of single blocks.
func gridOf(blocks, single *cell) profile.Grid {
	return profile.GridOf(max(blocks.int(), min(single.int(), 1)), single.int())
}

// categoryOf returns a function for the category of the current row. Rows of exports have none; they get
// the category of the file.
func (r *restoring) categoryOf(file *file, in *rows) func() trace.Sym {
	category, from := in.column("category"), &cell{}
	if file == copiesFile {
		from = in.column("memory_from")
	}
	own := order.Each(file.of.Categories(), r.opt.Syms.Intern) // by number in the file
	none, fills := r.opt.Syms.Intern(""), profile.NoMemory.String()
	return func() trace.Sym {
		switch sym := category.sym(); {
		case sym != none && sym != 0 || own == nil:
			return sym
		case string(from.text()) == fills:
			return own[1]
		}
		return own[0]
	}
}

// argumentsOf returns a function that builds the arguments of the current row, given its category.
func (r *restoring) argumentsOf(file *file, in *rows) func(category trace.Sym) trace.ArgsID {
	var of func() trace.ArgsID
	switch {
	case r.opt.Filter.Args == profile.ArgsNone:
	case file.operators:
		of = r.inputsOf(in)
	case file == copiesFile:
		bytes := in.column("bytes")
		known := map[int64]trace.ArgsID{}
		of = func() trace.ArgsID {
			if bytes.null() {
				return 0
			}
			return order.Memo(known, bytes.int(), func() trace.ArgsID { return r.opt.Args.Put(trace.ArgList(nil).Int(r.keys.bytes, bytes.int())) })
		}
	}
	if of == nil {
		return func(trace.Sym) trace.ArgsID { return 0 }
	}
	wanted := map[trace.Sym]bool{}
	return func(category trace.Sym) trace.ArgsID {
		want := order.Memo(wanted, category, func() bool { return r.wantsArguments(r.opt.Syms.Name(category)) })
		if !want {
			return 0
		}
		return of()
	}
}

// wantsArguments reports whether the filter keeps the arguments of a category.
func (r *restoring) wantsArguments(category string) bool {
	return (&profile.Filter{Cats: r.opt.Filter.ArgCats}).KeepsCategory(category)
}

// inputsOf returns a function that builds the arguments of operators. Many operators have equal arguments,
// which are parsed once.
func (r *restoring) inputsOf(in *rows) func() trace.ArgsID {
	type inputs [3]trace.Sym
	cells := [3]*cell{in.column("shapes"), in.column("types"), in.column("concrete")}
	keys := [3]trace.Sym{r.keys.shapes, r.keys.types, r.keys.concrete}
	if r.opt.Filter.Args == profile.ArgsMin && !slices.Contains(r.opt.Filter.ArgNames, profile.ConcreteInputs) {
		cells[2] = &cell{}
	}
	known := map[inputs]trace.ArgsID{}
	texts := parser{syms: trace.NewSymbolCache(r.opt.Syms)}
	return func() trace.ArgsID {
		key := inputs{cells[0].sym(), cells[1].sym(), cells[2].sym()}
		id, ok := known[key]
		if ok || key == (inputs{}) {
			return id
		}
		var list trace.ArgList
		for i, x := range cells {
			if x.null() {
				continue
			}
			texts.b = x.text()
			if list = list.Array(keys[i], texts.array()); texts.damaged {
				in.err = errDamaged
				return 0
			}
		}
		id = r.opt.Args.Put(list)
		known[key] = id
		return id
	}
}

func (r *restoring) instants() error {
	in := r.openRows("instants-0", r.opt.Syms)
	at, time, name, category := r.spot(in), in.column("time"), in.column("name"), in.column("category")
	keys := [...]trace.Sym{r.keys.deviceType, r.keys.device, r.keys.allocated, r.keys.reserved}
	values := [...]*cell{in.column("device_type"), in.column("device"), in.column("allocated"), in.column("reserved")}
	for p, row, ok := at.next(); ok; p, row, ok = at.next() {
		x := profile.Instant{Time: trace.Time(time.int()), Row: row, Name: name.sym(), Cat: category.sym()}
		if !r.keep.Category(x.Cat) || !r.keep.Within(x.Name, x.Time, x.Time) {
			continue
		}
		if r.opt.Filter.Args != profile.ArgsNone && r.wantsArguments(r.opt.Syms.Name(x.Cat)) {
			var list trace.ArgList
			for i, v := range values {
				if !v.null() {
					list = list.Int(keys[i], v.int())
				}
			}
			x.Args = r.opt.Args.Put(list)
		}
		p.Instants = append(p.Instants, x)
	}
	return in.close()
}

// counters reads the counters of traces, whose category is unknown.
func (r *restoring) counters() error {
	if r.opt.Filter.Cats != nil {
		return nil
	}
	in := r.openRows("counters-traces", nil)
	at, time, value := r.spot(in), in.column("time"), in.column("value")
	for p, row, ok := at.next(); ok; p, row, ok = at.next() {
		p.Samples = append(p.Samples, profile.CounterSample{Time: trace.Time(time.int()), Row: row, Value: value.real()})
	}
	return in.close()
}

// fingerprints reads device work.
func (r *restoring) fingerprints() error {
	for _, file := range []*file{kernelsFile, copiesFile} {
		in := r.openRows(file.name, r.opt.Syms)
		at, start, dur, name := r.spot(in), in.column("start"), in.column("dur"), in.column("name")
		for p, row, ok := at.next(); ok; p, row, ok = at.next() {
			p.Fingerprint = append(p.Fingerprint, profile.Fingerprint{Time: trace.Time(start.int()), Dur: dur.int(), Name: name.sym(), Row: row})
		}
		if err := in.close(); err != nil {
			return err
		}
	}
	return nil
}

// collectiveCells are the columns of collectives. correlation is not needed: its information, the step and
// the call's details about the kernel, is already in the row.
type collectiveCells struct {
	start, dur, seq, comms        *cell
	process, thread, onGPU, step  *cell
	name, op, group, ranks, dtype *cell
	in, out, size, splits         *cell
	held                          *cell
	tasks                         [4]*cell // member, awaited, for how long, at least
	ofKind                        []*cell  // all columns from the second line on
}

func newCollectiveCells(in *rows) *collectiveCells {
	c := &collectiveCells{start: in.column("start"), dur: in.column("dur"), seq: in.column("seq"), comms: in.column("comms_id")}
	kind := func(name string) *cell {
		x := in.column(name)
		c.ofKind = append(c.ofKind, x)
		return x
	}
	c.process, c.thread, c.onGPU, c.step = kind("process"), kind("thread"), kind("on_gpu"), kind("step")
	c.name, c.op, c.group, c.ranks, c.dtype = kind("name"), kind("op"), kind("group_name"), kind("group_ranks"), kind("dtype")
	c.in, c.out, c.size, c.splits = kind("elements_in"), kind("elements_out"), kind("group_size"), kind("splits")
	c.held = kind("held")
	c.tasks = [4]*cell{kind("member"), kind("awaited"), kind("awaited_ns"), kind("at_least")}
	return c
}

// kind returns what the rows of the current run have in common.
func (c *collectiveCells) kind() profile.Collective {
	return profile.Collective{Event: profile.NoEvent, Row: int32(c.thread.int()), Name: c.name.sym(), OnGPU: c.onGPU.int() != 0, Op: c.op.sym(), Group: c.group.sym(),
		Ranks: c.ranks.sym(), Dtype: c.dtype.sym(), In: c.in.int(), Out: c.out.int(), GroupSize: int32(c.size.int()), Splits: c.splits.sym(),
		Step: profile.StepKind(stepKinds.number(c.step.text())), Held: c.held.int() != 0,
		Tasks: profile.CollectiveTasks{Member: int32(c.tasks[0].int()), Awaited: int32(c.tasks[1].int()), AwaitedNs: c.tasks[2].int(), AtLeast: int32(c.tasks[3].int())}}
}

// collectives reads collectives, one run of the same kind at a time.
func (r *restoring) collectives() error {
	in := r.openRows("collectives-0", r.opt.Syms)
	c := newCollectiveCells(in)
	if len(r.profiles) == 1 {
		r.profiles[0].Collectives.Grow(int(in.left))
	}
	for in.run(c.ofKind) {
		p := r.profileOf(c.process)
		if p == nil {
			continue
		}
		x := c.kind()
		if x.Row < 0 || int(x.Row) >= len(p.Rows) {
			in.err = errDamaged
			break
		}
		p.Collectives.AddRun(p.Collectives.Kind(&x), c.start.ints(in.width), c.dur.ints(in.width), c.seq.ints(in.width), c.comms.ints(in.width))
	}
	return in.close()
}
