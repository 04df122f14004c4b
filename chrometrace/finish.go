package chrometrace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// finish makes a profile of what was collected.
func (c *collector) finish() *profile.Profile {
	c.endOpen()
	c.leaveOutRepeated()
	f := &profile.Profile{Name: c.name, Total: c.total, Meta: profile.Meta{Rank: -1, WorldSize: -1, GPU: -1}}
	c.readHeaders(&f.Meta)
	f.Meta.Recorded = recorded(&f.Meta)
	c.clocks(f)
	c.nameParts(&f.Meta)
	j := joiner{collector: c, rows: c.finishRows(f)}
	c.ownRows(f, j.rows)
	f.Events = j.events()
	c.findDevices(f)
	f.Instants = joined(j, func(t *parse.Tables) *[]profile.Instant { return &t.Instants }, func(x *profile.Instant, k *keptBatch) bool {
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	f.Samples = joined(j, func(t *parse.Tables) *[]profile.CounterSample { return &t.Samples }, func(x *profile.CounterSample, k *keptBatch) bool {
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	f.Grids = joined(j, func(t *parse.Tables) *[]profile.KernelGrid { return &t.Grids }, func(x *profile.KernelGrid, k *keptBatch) bool {
		x.Event = j.event(x.Event, k)
		return x.Event != profile.NoEvent
	})
	j.arrows(f)
	c.joinCANN(f)
	f.Steps = joined(j, func(t *parse.Tables) *[]profile.Step { return &t.Steps }, func(x *profile.Step, k *keptBatch) bool {
		x.Event = j.event(x.Event, k)
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	j.collectives(f)
	f.Steps = profile.WholeSteps(f.Steps, c.opt.Syms)
	f.Fingerprint = joined(j, func(t *parse.Tables) *[]profile.Fingerprint { return &t.Prints }, func(x *profile.Fingerprint, k *keptBatch) bool {
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	for _, x := range c.Diags {
		c.opt.Diags.Add(trace.Diag{Message: x.Message, Pos: trace.Pos{File: c.name, Offset: x.Offset}, Msg: x.Msg, Count: x.Count})
	}
	return f
}

// arrows fills in the arrows.
func (j joiner) arrows(f *profile.Profile) {
	redrawn := j.redrawn(f)
	arrow := func(x *profile.Arrow, k *keptBatch) bool {
		if !j.row(&x.Row, k) {
			return false
		}
		if x.Event != profile.NoEvent {
			if x.Event = j.event(x.Event, k); x.Event == profile.NoEvent {
				return false
			}
		}
		return !redrawn(x) && j.time(&x.Time, k)
	}
	f.Arrows = joined(j, func(t *parse.Tables) *[]profile.Arrow { return &t.Arrows }, arrow)
	if !j.joinExternal(f) {
		f.Arrows = append(f.Arrows, joined(j, func(t *parse.Tables) *[]profile.Arrow { return &t.Redundant }, arrow)...)
	}
}

// collectives fills in the collectives, and what framework annotations and launches add to them.
func (j joiner) collectives(f *profile.Profile) {
	launches := joined(j, func(t *parse.Tables) *[]profile.Launch { return &t.Launches }, func(x *profile.Launch, k *keptBatch) bool {
		return !j.docs[k.doc].unlinked && j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	f.Collectives = profile.CollectivesOf(joined(j, func(t *parse.Tables) *[]profile.Collective { return &t.Collectives }, func(x *profile.Collective, k *keptBatch) bool {
		x.Event = j.event(x.Event, k)
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})...)
	j.addHCCL(f, joined(j, func(t *parse.Tables) *[]parse.PeerTask { return &t.Peers }, func(x *parse.PeerTask, k *keptBatch) bool {
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	}))
	asked := joined(j, func(t *parse.Tables) *[]profile.CollectiveAnnotation { return &t.Asked }, func(x *profile.CollectiveAnnotation, k *keptBatch) bool {
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	callers := joined(j, func(t *parse.Tables) *[]profile.CollectiveAnnotation { return &t.Callers }, func(x *profile.CollectiveAnnotation, k *keptBatch) bool {
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	syncs := joined(j, func(t *parse.Tables) *[]profile.CollectiveAnnotation { return &t.Syncs }, func(x *profile.CollectiveAnnotation, k *keptBatch) bool {
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	f.PlaceCollectives(launches, asked)
	f.SettleHosts(j.opt.Syms, launches, callers, syncs)
}

// readHeaders reads the headers of the documents.
func (c *collector) readHeaders(m *profile.Meta) {
	for i := range c.docs {
		d := &c.docs[i]
		kineto, own := false, false
		for _, x := range d.header {
			kineto = kineto || x.Key == "schemaVersion"
			if base, ok := parse.BaseOf(x.Key, x.Value); ok {
				d.base, d.known = base, true
			}
			if x.Key == "metadata" {
				if base, ok := ownBase(x.Value); ok {
					d.base, d.known, own = base, true, true
				}
			}
			if err := readHeader(m, x.Key, x.Value); err != nil {
				c.Diags.Report(trace.TraceHeader, x.Offset, 1, x.Key, err)
			}
		}
		if base := c.opt.Base; !d.known && base != 0 {
			d.base, d.known = base, true
		}
		d.own, d.unlinked = own, own && d.drawn
		// Kineto sets times before its base to 0.
		d.dropZero = kineto && !own && d.zero.N > 0 && (d.known || d.absolute.N > 0)
	}
}

// clocks determines the origin of the times, and their bounds.
func (c *collector) clocks(f *profile.Profile) {
	var all parse.Bounds
	until, told := trace.Time(0), true
	for i := range c.docs {
		d := &c.docs[i]
		shifted := func(b parse.Bounds) parse.Bounds {
			b.First += trace.Time(d.base)
			b.Last += trace.Time(d.base)
			return b
		}
		relative := d.relative
		if !d.dropZero {
			relative.Merge(d.zero)
		} else {
			c.Diags.Report(trace.TraceClockZero, d.zeroAt, d.zero.N)
		}
		all.Merge(shifted(relative))
		all.Merge(d.absolute)
		until = max(until, d.until())
		told = told && d.window.Told != 0
		switch {
		case d.known:
			f.Meta.Base = cmp.Or(f.Meta.Base, d.base)
			f.Meta.Origin = profile.OriginUnix
		case d.absolute.N > 0:
			f.Meta.Origin = profile.OriginUnix
		case relative.N > 0:
			c.Diags.Report(trace.TraceNoBase, 0, 1)
		}
	}
	for i := range c.docs { // if one is unknown, all of them are useless
		if d := &c.docs[i]; !d.known && d.absolute.N == 0 && d.relative.N+d.zero.N > 0 {
			f.Meta.Origin = profile.OriginUnknown
		}
	}
	f.First, f.Last = all.First, all.Last
	if told && until < f.Last {
		f.Meta.Until = until
	}
}

// finishRows fills f.Rows, and returns their numbers there by number in the collector.
func (c *collector) finishRows(f *profile.Profile) (to []int32) {
	known := map[parse.Where]int32{} // rows that events without a lane belong to
	for _, l := range [...]parse.Lane{parse.LaneStream, parse.LaneThread} {
		for i, id := range c.rowIDs {
			if id.Lane == l {
				known[id.Where()] = int32(i)
			}
		}
	}
	number := make([]int32, len(c.rowIDs))
	for i := range number {
		number[i] = -1
	}
	to = make([]int32, len(c.rowIDs))
	var ids []*parse.RowID
	for i, id := range c.rowIDs {
		row := int32(i)
		if id.Lane == parse.LaneAny {
			if other, ok := known[id.Where()]; ok {
				row = other
			}
		}
		if number[row] < 0 {
			number[row] = int32(len(ids))
			ids = append(ids, c.rowIDs[row])
		}
		to[i] = number[row]
	}
	f.Rows = c.namedRows(ids)
	c.joinParts(f.Rows)
	if slices.ContainsFunc(f.Rows, func(r profile.Row) bool { return r.Part != "" }) {
		f.Meta.Rank = -1 // the header's rank is that of the first part, as SGLang merges headers
	}
	return to
}

// maxParts bounds the number of ranks in a file: each is compared with the others.
const maxParts = 1024

// joinParts makes one rank of a file with more parts than anybody merges: the prefixes of its pids are not
// ranks.
func (c *collector) joinParts(rows []profile.Row) {
	parts := order.Set(order.EachRow(rows, func(r *profile.Row) string { return r.Part }))
	if len(parts) <= maxParts {
		return
	}
	c.Diags.Report(trace.TraceParts, 0, 1, maxParts)
	for i := range rows {
		if r := &rows[i]; r.Part != "" {
			r.PIDText, r.Part = "["+r.Part+"] "+r.PIDText, ""
		}
	}
}

// namedRows returns rows with names and numbers from the metadata.
func (c *collector) namedRows(ids []*parse.RowID) (rows []profile.Row) {
	processes, threads := map[parse.Where]*profile.Row{}, map[parse.Where]*profile.Row{}
	for _, n := range c.names {
		table, key := processes, parse.Where{Part: n.Part, PID: n.PID}
		if strings.HasPrefix(n.What, "thread_") {
			table, key.TID = threads, n.TID
		}
		if table[key] == nil {
			table[key] = &profile.Row{}
		}
		n.Apply(table[key])
	}
	for _, id := range ids {
		row := id.Row()
		if p := processes[parse.Where{Part: id.Part, PID: id.PID}]; p != nil {
			row.Process, row.Labels, row.ProcessSort = p.Process, p.Labels, p.ProcessSort
		}
		if t := threads[id.Where()]; t != nil && id.Lane <= parse.LaneStream {
			row.Name, row.Sort = t.Name, t.Sort
			if id.Lane == parse.LaneAny && strings.HasPrefix(strings.ToLower(t.Name), "stream ") {
				row.Kind = profile.RowStream // even without events
			}
		}
		if _, isNumber := jsonscan.Int([]byte(id.TID)); row.Name == "" && !isNumber && id.Lane <= parse.LaneStream {
			row.Name = id.TID
		}
		rows = append(rows, row)
	}
	return rows
}

// A joiner joins the tables of batches.
type joiner struct {
	*collector
	rows  []int32 // by number in the collector; outside if left out
	moved []int32 // new event numbers; nil if they are unchanged
}

// joined returns the table of all batches, after fixing every record; it omits records for which fix returns
// false. It frees batches on the way.
func joined[T any](j joiner, of func(*parse.Tables) *[]T, fix func(x *T, k *keptBatch) bool) []T {
	n := order.SumRows(j.kept, func(k *keptBatch) int { return len(*of(&k.Tables)) })
	if n == 0 {
		return nil
	}
	out := memory.Make[T](n)[:0]
	for i := range j.kept {
		k := &j.kept[i]
		for _, x := range *of(&k.Tables) {
			if out = append(out, x); !fix(&out[len(out)-1], k) {
				out = out[:len(out)-1]
			}
		}
		*of(&k.Tables) = nil
	}
	return out
}

// outside marks a row that is left out.
const outside = -1

// row converts a row number of a batch to that of the file, and reports whether the row is kept.
func (j joiner) row(row *int32, k *keptBatch) bool {
	*row = j.rows[k.rows[*row]]
	return *row != outside
}

// time converts a time to the clock of the file. It returns false if the time is invalid.
func (j joiner) time(t *trace.Time, k *keptBatch) bool {
	d := &j.docs[k.doc]
	if *t == 0 && d.dropZero {
		return false
	}
	if *t < parse.AbsoluteFrom {
		*t += trace.Time(d.base)
	}
	return true
}

// events returns the slices, without those that the filter rejects now that their ends are known.
func (j *joiner) events() []profile.Slice {
	f := &j.opt.Filter
	late := j.paired && (f.MinDur > 0 || f.From != 0 || f.To != 0)
	drops := late
	for i := range j.docs {
		drops = drops || j.docs[i].dropZero
	}
	drops = drops || slices.Contains(j.rows, outside)
	n := int32(0)
	return joined(*j, func(t *parse.Tables) *[]profile.Slice { return &t.Events }, func(x *profile.Slice, k *keptBatch) bool {
		row := x.Place.Row()
		keep := j.row(&row, k) && j.time(&x.Time, k)
		if x.Place = x.Place.OnRow(row); j.docs[k.doc].unlinked {
			x.Correlation = 0
		}
		if late && keep {
			keep = x.Dur >= f.MinDur && f.Overlaps(x.Time, x.End())
		}
		if drops {
			if !keep {
				j.moved = append(j.moved, profile.NoEvent)
			} else {
				j.moved = append(j.moved, n)
				n++
			}
		}
		return keep
	})
}

// event converts an event number of a batch to that of the file.
func (j joiner) event(i int32, k *keptBatch) int32 {
	if i == profile.NoEvent {
		return profile.NoEvent
	}
	i += int32(k.events0)
	if j.moved != nil {
		return j.moved[i]
	}
	return i
}

// An openSlice has begun and not ended yet.
type openSlice struct {
	slice *profile.Slice // nil if the filter rejects it
	name  trace.Sym
	time  trace.Time
	at    int64
	doc   int
}

// spans pairs begins and ends. rows are row numbers of the file, by row of the batch.
func (c *collector) spans(b *parse.Batch, rows []int32) {
	for i := range b.Open {
		s := &b.Open[i]
		row := rows[s.Row]
		stack := c.open[row]
		if !s.Ends {
			o := openSlice{name: s.Name, time: s.Time, at: s.At, doc: len(c.docs) - 1}
			if s.Event != profile.NoEvent {
				o.slice = &b.Events[s.Event]
				c.paired = true
			}
			c.open[row] = append(stack, o)
			continue
		}
		last := len(stack) - 1
		if last < 0 {
			c.Diags.Report(trace.TraceUnmatchedEnd, s.At, 1)
			continue
		}
		for j := last; s.Async && j >= 0; j-- { // slices with one id may overlap
			if stack[j].name == s.Name {
				last = j
				break
			}
		}
		o := stack[last]
		c.open[row] = slices.Delete(stack, last, last+1)
		c.end(o, s)
	}
}

// end ends a slice.
func (c *collector) end(o openSlice, s *parse.Span) {
	if o.slice == nil {
		return
	}
	dur := int64(s.Time - o.time)
	if dur < 0 {
		c.Diags.Report(trace.TraceNegativeDuration, s.At, 1)
		dur = 0
	}
	o.slice.Dur = dur
	if len(s.Args) > 0 {
		o.slice.Args = c.opt.Args.Put(s.Args.Extend(o.slice.Args))
	}
}

// endOpen ends the slices that are still open at the last event of their document, as their real ends are
// unknown.
func (c *collector) endOpen() {
	for _, stack := range c.open {
		for _, o := range stack {
			c.Diags.Report(trace.TraceOpenSlice, o.at, 1)
			if o.slice != nil {
				o.slice.Dur = max(0, int64(c.docs[o.doc].last(o.time)-o.time))
			}
		}
	}
}
