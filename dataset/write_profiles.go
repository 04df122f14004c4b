package dataset

import (
	"cmp"
	"encoding/json"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A recording writes the profiles of a capture.
type recording struct {
	*writer
	keys        argKeys
	processes   lazy[processRow]
	ranks       lazy[rankRow]
	threads     lazy[threadRow]
	slices      map[*file]*lazy[sliceRow]
	operators   map[*file]*lazy[operatorRow]
	steps       lazy[stepRow]
	collectives lazy[collectiveRow]
	instants    lazy[instantRow]
	counters    lazy[counterRow]
}

// argKeys are the names of arguments that captures store.
type argKeys struct {
	bytes, shapes, types, concrete          trace.Sym
	deviceType, device, allocated, reserved trace.Sym
}

func newArgKeys(syms *trace.Symbols) (k argKeys) {
	syms.InternAll(map[*trace.Sym]string{&k.bytes: "bytes", &k.shapes: "Input Dims", &k.types: "Input type", &k.concrete: profile.ConcreteInputs,
		&k.deviceType: "Device Type", &k.device: "Device Id", &k.allocated: "Total Allocated", &k.reserved: "Total Reserved"})
	return k
}

// recorded writes the profiles of a recording.
func (w *writer) recorded() {
	if w.content.Source == nil {
		return
	}
	r := &recording{writer: w, keys: newArgKeys(w.content.Syms), processes: lazy[processRow]{of: w, name: "processes-0"}, ranks: lazy[rankRow]{of: w, name: "ranks-0"},
		threads: lazy[threadRow]{of: w, name: "threads-0"}, slices: map[*file]*lazy[sliceRow]{}, operators: map[*file]*lazy[operatorRow]{},
		steps: lazy[stepRow]{of: w, name: "steps-0"}, collectives: lazy[collectiveRow]{of: w, name: "collectives-0"},
		instants: lazy[instantRow]{of: w, name: "instants-0"}, counters: lazy[counterRow]{of: w, name: "counters-traces"}}
	for i, p := range w.content.Source.Profiles {
		r.profile(int32(i), p, "", w.content.Are[i])
	}
	for _, p := range w.content.Collectives {
		r.profile(int32(r.processes.rows()), p, collectivesView, w.content.identityOf(p.Meta.PID))
	}
	for _, f := range eventFiles {
		if l := r.slices[f]; l != nil {
			l.close()
		}
		if l := r.operators[f]; l != nil {
			l.close()
		}
	}
	for _, l := range []interface{ close() }{&r.processes, &r.ranks, &r.threads, &r.steps, &r.collectives, &r.instants, &r.counters} {
		l.close()
	}
}

// identityOf returns the rank of a process, with the source of that information.
func (c *Content) identityOf(pid int64) []profile.Identity {
	for i, p := range c.Source.Profiles {
		if p.Meta.PID == pid {
			return c.Are[i]
		}
	}
	return nil
}

// profile writes a process.
func (r *recording) profile(number int32, p *profile.Profile, view string, are []profile.Identity) {
	meta, err := json.Marshal(&p.Meta)
	r.errs = append(r.errs, err)
	r.processes.write(processRow{Process: number, View: view, Host: p.Meta.Host, Backend: p.Meta.Backend, PID: p.Meta.PID, Rank: p.Meta.Rank,
		WorldSize: p.Meta.WorldSize, GPU: p.Meta.GPU, Absolute: p.Meta.Origin == profile.OriginUnix, First: int64(p.First), Last: int64(p.Last),
		Records: int64(p.Total), Meta: string(meta)})
	if view == "" {
		r.identities(number, are)
	}
	places := r.threadsOf(number, p, are)
	r.events(p, places)
	for _, s := range p.Steps {
		r.steps.write(stepRow{Start: int64(s.Time), Dur: s.Dur, Place: places[s.Row], Name: r.name(s.Name), Kind: stepKinds[s.Kind], Batch: s.Batch, OnGPU: s.OnGPU})
	}
	for i := range p.Collectives.Len() {
		c := p.Collectives.At(i)
		r.collective(&c, places)
	}
	for i := range p.Instants {
		r.instant(&p.Instants[i], places)
	}
	for _, s := range p.Samples {
		r.counters.write(counterRow{Time: int64(s.Time), Place: places[s.Row], Kind: traceCounter, Value: s.Value})
	}
}

func (r *recording) identities(number int32, are []profile.Identity) {
	for _, is := range are {
		row := rankRow{Process: number, Part: is.Part, Rank: is.Rank.String(), From: is.RankFrom, Host: is.Host}
		row.TP, row.PP, row.DP, row.EP, row.Global = int32(is.Rank.TP), int32(is.Rank.PP), int32(is.Rank.DP), int32(is.Rank.EP), is.Rank.Global
		r.ranks.write(row)
	}
}

// threadsOf writes the rows of a process, and returns the place of each.
func (r *recording) threadsOf(number int32, p *profile.Profile, are []profile.Identity) []Place {
	parts := map[string]Place{}
	for _, is := range are {
		_, pid, _ := p.ProcessOf(is.Part)
		pid = cmp.Or(pid, -1)
		parts[is.Part] = Place{Host: is.Host, Rank: is.Rank.String(), Process: number, PID: pid}
	}
	places := make([]Place, len(p.Rows))
	for i := range p.Rows {
		x := &p.Rows[i]
		place, ok := parts[x.Part]
		if !ok {
			place = Place{Process: number, PID: -1}
		}
		place.Thread = int32(i)
		places[i] = place
		r.threads.write(threadRow{Process: number, Thread: int32(i), Kind: rowKinds[x.Kind], Part: x.Part, PID: x.PID, TID: x.TID, PIDText: x.PIDText,
			TIDText: x.TIDText, ProcessName: x.Process, Name: x.Name, Labels: x.Labels, ProcessSort: x.ProcessSort, Sort: x.Sort, Folder: x.Folder, Unit: x.Unit})
	}
	return places
}

// events writes the events.
func (r *recording) events(p *profile.Profile, places []Place) {
	grids := p.Grids
	for i := range p.Events {
		e := &p.Events[i]
		f, row, at := fileOf(e.Place.Kind()), &p.Rows[e.Place.Row()], places[e.Place.Row()]
		if f.operators {
			r.operator(f, e, row.TID, at)
		} else {
			grid := profile.Grid(0)
			if len(grids) > 0 && grids[0].Event == int32(i) {
				grid, grids = grids[0].Grid, grids[1:]
			}
			r.slice(f, e, row, at, grid)
		}
	}
}

func (r *recording) operator(f *file, e *profile.Slice, tid int64, at Place) {
	row := operatorRow{Start: int64(e.Time), Dur: e.Dur, Place: at, Kind: f.kind, Name: r.name(e.Name), Category: r.name(e.Cat), TID: tid}
	for a := range r.content.Args.All(e.Args) {
		switch {
		case a.Kind != trace.ArgArray:
		case a.Key == r.keys.shapes:
			row.Shapes = r.jsonOf(a)
		case a.Key == r.keys.types:
			row.Types = r.jsonOf(a)
		case a.Key == r.keys.concrete:
			if _, ok := profile.AttentionOf(row.Name); ok {
				row.Concrete = r.jsonOf(a)
			}
		}
	}
	if r.operators[f] == nil {
		r.operators[f] = &lazy[operatorRow]{of: r.writer, name: f.name}
	}
	r.operators[f].write(row)
}

func (r *recording) jsonOf(a trace.Arg) string {
	r.text = r.json.value(r.text[:0], a.Key, a)
	return string(r.text)
}

func (r *recording) slice(f *file, e *profile.Slice, on *profile.Row, at Place, grid profile.Grid) {
	row := sliceRow{Start: int64(e.Time), Dur: e.Dur, Place: at, Kind: f.kind, Name: r.name(e.Name), Category: r.name(e.Cat), Device: -1, Stream: -1, Correlation: e.Correlation, Blocks: known(grid.Blocks()), OneBlock: known(grid.OneBlock())}
	switch f {
	case kernelsFile, copiesFile:
		row.Device, row.Stream = int32(on.PID), on.TID
	default:
		row.TID = on.TID
	}
	if a, ok := r.content.Args.Find(e.Args, r.keys.bytes); ok && f == copiesFile {
		n := a.Int()
		row.Bytes = &n
	}
	r.sliceTable(f).write(row)
}

// known returns the value of a column in which 0 is unknown.
func known(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

func (r *recording) sliceTable(f *file) *lazy[sliceRow] {
	if r.slices[f] == nil {
		r.slices[f] = &lazy[sliceRow]{of: r.writer, name: f.name}
	}
	return r.slices[f]
}

func (r *recording) collective(c *profile.Collective, places []Place) {
	r.collectives.write(collectiveRow{Start: int64(c.Time), Dur: c.Dur, Place: places[c.Row], Name: r.name(c.Name), OnGPU: c.OnGPU, CommsID: c.CommsID, Seq: c.Seq,
		Op: r.name(c.Op), Group: r.name(c.Group), Ranks: r.name(c.Ranks), Dtype: r.name(c.Dtype), In: c.In, Out: c.Out, GroupSize: c.GroupSize,
		Splits: r.name(c.Splits), Member: c.Tasks.Member, Awaited: c.Tasks.Awaited, AwaitedNs: c.Tasks.AwaitedNs, AtLeast: c.Tasks.AtLeast, Correlation: c.Correlation, Step: stepKinds[c.Step], Held: c.Held})
}

func (r *recording) instant(x *profile.Instant, places []Place) {
	row := instantRow{Time: int64(x.Time), Place: places[x.Row], Name: r.name(x.Name), Category: r.name(x.Cat)}
	for a := range r.content.Args.All(x.Args) {
		n := a.Int()
		for key, column := range map[trace.Sym]**int64{r.keys.deviceType: &row.DeviceType, r.keys.device: &row.Device, r.keys.allocated: &row.Allocated, r.keys.reserved: &row.Reserved} {
			if a.Key == key && *column == nil {
				*column = &n
			}
		}
	}
	r.instants.write(row)
}
