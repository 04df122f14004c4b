package ranks

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// joinPairs moves what only an export recorded of a process into the trace of the same process, so that the
// process is one rank, and whatever both recorded is drawn once.
func (m *Assignment) joinPairs(captures []*Capture, joined []*pair) []*Capture {
	var exports order.Groups[*Capture, []*pair]
	for _, p := range joined {
		order.Add(&exports, p.export, p)
	}
	for i, n := range exports.Keys {
		pairs := exports.List[i]
		slices.SortStableFunc(pairs, func(a, b *pair) int { return cmp.Compare(b.hits, a.hits) })
		into := pairs[0].trace
		a := &absorption{into: into.File, part: into.Part, from: n.File, pairs: pairs, syms: m.syms}
		m.absorbed[into.File], into.File.Duplicates = append(m.absorbed[into.File], a), append(into.File.Duplicates, n.File)
		a.number = int64(len(m.absorbed[into.File]))
		a.run()
		m.reportPair(into, n, a)
		into.learn(n)
		into.held = nil
		into.First, into.Last = min(into.First, into.File.First), max(into.Last, into.File.Last)
		if len(pairs) > 1 {
			tiePairs(pairs)
		}
		m.noteExportClock(n, into, pairs[0])
	}
	m.Files = slices.DeleteFunc(m.Files, func(f *inputs.ProcessProfile) bool {
		return slices.ContainsFunc(exports.Keys, func(c *Capture) bool { return c.File == f })
	})
	return slices.DeleteFunc(captures, func(c *Capture) bool { return slices.Contains(exports.Keys, c) })
}

// heldPairs divides pairs into those with related clocks whose exported events are held in memory, and the rest.
func heldPairs(pairs []*pair) (held, others []*pair) {
	for _, p := range pairs {
		if p.duplicates != nil && p.export.File.Source.Content.Rows == nil {
			held = append(held, p)
		} else {
			others = append(others, p)
		}
	}
	return held, others
}

// tiePairs records that the trace and the export of each pair are of one process.
func tiePairs(pairs []*pair) {
	for _, p := range pairs {
		p.trace.process = cmp.Or(p.trace.process, p.export.process, &process{})
		p.export.process = p.trace.process
	}
}

// learnPairs shares what each capture of a pair knows about rank and host.
func learnPairs(pairs []*pair) {
	for _, p := range pairs {
		p.export.learn(p.trace)
		p.trace.learn(p.export)
	}
}

func (m *Assignment) reportPair(t, n *Capture, a *absorption) {
	text := ""
	switch {
	case a.seen > 0:
		text = fmt.Sprintf(": %d of its %d kernels, copies, and CUDA calls are in both", a.same, a.seen)
	case a.pairs[0].duplicates != nil: // the events are read later
		text = fmt.Sprintf(": %d kernels and copies are in both", a.pairs[0].hits)
	}
	m.diags.Add(trace.RecordedTwice.Of(n.File.Name, n.processText(), t.File.Name, text))
}

// processText returns the name of an export's process for messages.
func (c *Capture) processText() string {
	return fmt.Sprintf("its process %d", c.File.Meta.PID)
}

// An absorption moves what an export recorded of a process into a trace of it.
type absorption struct {
	into   *inputs.ProcessProfile
	part   string
	from   *inputs.ProcessProfile
	pairs  []*pair // the first one is with into
	syms   *trace.Symbols
	number int64 // its number among the absorptions into the same trace, from 1
	// seen counts the export's events of kinds that both profilers record, and same counts those that the
	// traces also have.
	seen, same int

	held       func(trace.Time) trace.Time // converts times from the export's clock to the trace's
	own        *profile.Join               // joins the export's work with its calls
	duplicates []int32                     // for each event of the export: its event in into, isNew, or elsewhere
	rows       []int32                     // for each row of the export: its row in into
	shifted    []int32                     // for each event of the export: its event in into after the move, or profile.NoEvent
}

// Values of duplicates for events of the export that are not in into.
const (
	isNew     = -1
	elsewhere = -2 // in another trace of the process, or in such a trace in another form
)

// correlationStep keeps the correlation IDs of an export apart from those of the trace: each profiler has
// its own numbering.
const correlationStep = 1 << 40

// run performs the absorption.
func (a *absorption) run() {
	f, n := a.into, a.from
	a.held = func(t trace.Time) trace.Time { return t }
	if tw := a.pairs[0].duplicates; tw != nil {
		a.held = tw.begin().heldTime
	}
	a.own = n.JoinLaunches(func(*profile.Row) bool { return true })
	a.recognize()
	a.mapRows()
	steps := a.newSteps()
	a.addEvents()
	for _, x := range n.Instants {
		x.Time, x.Row = a.held(x.Time), a.rows[x.Row]
		f.Instants = append(f.Instants, x)
	}
	for _, x := range n.Samples {
		x.Time, x.Row = a.held(x.Time), a.rows[x.Row]
		f.Samples = append(f.Samples, x)
	}
	a.addCollectives()
	a.addSteps(steps)
	f.First, f.Last = min(f.First, a.held(n.First)), max(f.Last, a.held(n.Last))
	f.Total += n.Total - a.same
	f.Replace(f.Profile)
	n.GiveUp()
	a.duplicates, a.rows, a.shifted, a.own = nil, nil, nil, nil
}

// mapRows maps the rows of the export to rows of the trace, and adds those that the trace lacks.
func (a *absorption) mapRows() {
	f := a.into
	pid, pidText := int64(0), ""
	for i := range f.Rows {
		if r := &f.Rows[i]; r.Part == a.part && r.Kind == profile.RowThread && r.PID != 0 {
			pid, pidText = r.PID, r.PIDText
			break
		}
	}
	folders := map[string]string{} // of devices and threads
	a.rows = make([]int32, len(a.from.Rows))
	for i, row := range a.from.Rows {
		row.Part = a.part
		switch {
		case row.Kind == profile.RowStream:
			folders["device "+row.PIDText] = row.Folder
		case row.Kind == profile.RowThread && row.Folder != "":
			folders[fmt.Sprint("thread ", row.TID)] = row.Folder
			fallthrough
		case pid != 0:
			row.PID, row.PIDText = pid, pidText
		}
		a.rows[i] = int32(slices.IndexFunc(f.Rows, func(r profile.Row) bool {
			return row.Kind == profile.RowStream && r.Kind == row.Kind && r.Part == row.Part && r.PID == row.PID && r.TID == row.TID
		}))
		if a.rows[i] < 0 {
			a.rows[i] = int32(len(f.Rows))
			f.Rows = append(f.Rows, row)
		}
	}
	// Rows of the trace move into the folder of the same device or thread.
	for i := range f.Rows {
		r := &f.Rows[i]
		if r.Part != a.part || r.Folder != "" {
			continue
		}
		switch r.Kind {
		case profile.RowStream:
			r.Folder = folders["device "+r.PIDText]
		case profile.RowThread:
			r.Folder = folders[fmt.Sprint("thread ", r.TID)]
		}
	}
}

// addEvents adds the new events, and ties them to their calls, which may be calls of the trace.
func (a *absorption) addEvents() {
	f, n := a.into, a.from
	f.Events = slices.Grow(f.Events, len(n.Events)-a.same)
	a.shifted = make([]int32, len(n.Events))
	for i := range n.Events {
		if a.shifted[i] = a.duplicates[i]; a.duplicates[i] != isNew {
			continue
		}
		e := n.Events[i]
		from, to := a.held(e.Time), a.held(e.End())
		e.Time, e.Dur, e.Place = from, int64(to-from), e.Place.OnRow(a.rows[e.Place.Row()])
		if e.Correlation != 0 {
			e.Correlation = a.correlationOf(&e)
		}
		a.shifted[i] = int32(len(f.Events))
		f.Events = append(f.Events, e)
	}
	for _, k := range n.Grids {
		if a.duplicates[k.Event] == isNew {
			f.Grids = append(f.Grids, profile.KernelGrid{Event: a.shifted[k.Event], Grid: k.Grid})
		}
	}
}

// correlationOf returns the correlation ID of a new event in the trace: that of its call, if the trace has
// the call.
func (a *absorption) correlationOf(e *profile.Slice) int64 {
	moved := e.Correlation + a.number*correlationStep
	if e.IsLaunch() {
		return moved
	}
	call := a.own.Of(e.Correlation)
	if call < 0 || a.duplicates[call] < 0 {
		return moved
	}
	other := &a.into.Events[a.duplicates[call]]
	other.Correlation = cmp.Or(other.Correlation, moved)
	return other.Correlation
}

// place returns the event in the trace that an event of the export is or became.
func (a *absorption) place(event int32) int32 {
	if event == profile.NoEvent || a.shifted[event] < 0 {
		return profile.NoEvent
	}
	return a.shifted[event]
}

// addCollectives adds the new collectives. Where the trace knows only the kernel of a collective, it also
// takes the details from the export.
func (a *absorption) addCollectives() {
	f, n := a.into, a.from
	names := profile.BareNames(a.syms)
	var found []*search
	var known [][]int32
	var traces []*inputs.ProcessProfile
	for _, p := range a.pairs {
		if p.duplicates == nil {
			continue
		}
		held, which := collectiveMoments(p.trace.File.Profile, p.trace.Part, names)
		found, known, traces = append(found, p.duplicates.forEvents(held).begin()), append(known, which), append(traces, p.trace.File)
	}
	count := f.Collectives.Len()
	for i := range n.Collectives.Len() {
		c := n.Collectives.At(i)
		isDuplicate := false
		for k, search := range found {
			at, ok := search.find(names.Of(c.Name), c.Time, c.Dur)
			if ok && traces[k] == f && int(known[k][at]) < count {
				learnCollective(&f.Collectives, int(known[k][at]), &c)
			}
			isDuplicate = isDuplicate || ok
		}
		if isDuplicate {
			continue
		}
		end := a.held(c.Time + trace.Time(c.Dur))
		c.Time, c.Row, c.Event = a.held(c.Time), a.rows[c.Row], a.place(c.Event)
		c.Dur = int64(end - c.Time)
		f.Collectives.Add(&c)
	}
}

// collectiveMoments returns the kernels of collectives of a part of a profile, and the index of each in p.Collectives.
func collectiveMoments(p *profile.Profile, part string, names *trace.PerName[trace.Sym]) (moments, []int32) {
	var which []int32
	kinds := p.Collectives.Kinds()
	for i := range p.Collectives.Len() {
		if c := &kinds[p.Collectives.KindOf(i)]; c.OnGPU && p.Rows[c.Row].Part == part {
			which = append(which, int32(i))
		}
	}
	slices.SortStableFunc(which, func(a, b int32) int { return cmp.Compare(p.Collectives.Start(int(a)), p.Collectives.Start(int(b))) })
	var m moments
	for _, i := range which {
		c := p.Collectives.At(int(i))
		m.Start, m.Dur, m.Name = append(m.Start, c.Time), append(m.Dur, c.Dur), append(m.Name, names.Of(c.Name))
	}
	return m, which
}

// learnCollective fills in the details that a trace lacks of its i-th collective.
func learnCollective(of *profile.Collectives, i int, from *profile.Collective) {
	if c := of.At(i); c.Group == 0 && c.CommsID == 0 && c.Op == 0 {
		c.Group, c.Op, c.Dtype, c.In, c.GroupSize, c.Seq = from.Group, from.Op, from.Dtype, from.In, from.GroupSize, from.Seq
		of.Set(i, &c)
	}
}

// newSteps returns the steps during which the traces have no step of the same kind. The other steps' work
// on the GPU is in the traces themselves.
func (a *absorption) newSteps() (fresh []profile.Step) {
	type window struct{ from, to trace.Time }
	var known [2][]window // CPU, GPU
	side := func(s *profile.Step) int {
		if s.OnGPU {
			return 1
		}
		return 0
	}
	for _, p := range a.pairs {
		t := p.trace.File
		for i := range t.Steps {
			if s := &t.Steps[i]; t.Rows[s.Row].Part == p.trace.Part {
				known[side(s)] = append(known[side(s)], window{s.Time, s.Time + trace.Time(s.Dur)})
			}
		}
	}
	for k := range known {
		slices.SortFunc(known[k], func(x, y window) int { return cmp.Compare(x.from, y.from) })
	}
	for _, s := range a.from.Steps {
		from, to := a.held(s.Time), a.held(s.Time+trace.Time(s.Dur))
		list := known[side(&s)]
		i, _ := slices.BinarySearchFunc(list, to, func(w window, t trace.Time) int { return cmp.Compare(w.from, t) })
		switch {
		case i == 0 || list[i-1].to <= from:
			fresh = append(fresh, s)
		case s.OnGPU && s.Event != profile.NoEvent:
			a.duplicates[s.Event] = elsewhere
		}
	}
	return fresh
}

// addSteps adds steps to the trace.
func (a *absorption) addSteps(steps []profile.Step) {
	for _, s := range steps {
		from, to := a.held(s.Time), a.held(s.Time+trace.Time(s.Dur))
		s.Time, s.Dur, s.Row, s.Event = from, int64(to-from), a.rows[s.Row], a.place(s.Event)
		a.into.Steps = append(a.into.Steps, s)
	}
}

// window converts a window from the trace's clock to the export's; 0 is no bound.
func (a *absorption) window(held inputs.Extent) inputs.Extent {
	local := func(t trace.Time) trace.Time {
		if t == 0 {
			return 0
		}
		return t + trace.Time(a.pairs[0].shift.offsetAt(t))
	}
	return inputs.Extent{From: local(held.From), To: local(held.To)}
}
