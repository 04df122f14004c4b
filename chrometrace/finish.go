package chrometrace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// finish makes a File of what was collected.
func (c *collector) finish() *profile.Profile {
	f := &profile.Profile{Name: c.name, Total: c.total, Meta: profile.Meta{Rank: -1, WorldSize: -1, GPU: -1}}
	c.endOpen()
	c.readHeaders(&f.Meta)
	c.clocks(f)
	j := joiner{collector: c, rows: c.finishRows(f)}
	c.ownRows(f, j.rows)
	f.Events = j.events()
	f.Instants = joined(j, func(t *tables) *[]trace.Instant { return &t.instants }, func(x *trace.Instant, k *kept) bool {
		return j.track(&x.Track, k) && j.time(&x.Time, k)
	})
	f.Samples = joined(j, func(t *tables) *[]trace.Sample { return &t.samples }, func(x *trace.Sample, k *kept) bool {
		return j.track(&x.Track, k) && j.time(&x.Time, k)
	})
	f.Launches = joined(j, func(t *tables) *[]profile.Link { return &t.launches }, j.link)
	f.Work = joined(j, func(t *tables) *[]profile.Link { return &t.work }, j.link)
	redrawn := c.redrawn(f)
	arrow := func(x *profile.Arrow, k *kept) bool {
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
	f.Arrows = joined(j, func(t *tables) *[]profile.Arrow { return &t.arrows }, arrow)
	f.Arrows = append(f.Arrows, joined(j, func(t *tables) *[]profile.Arrow { return &t.redundant }, arrow)...)
	f.Collectives = joined(j, func(t *tables) *[]profile.Collective { return &t.collectives }, func(x *profile.Collective, k *kept) bool {
		x.Event = j.event(x.Event, k)
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	f.Steps = joined(j, func(t *tables) *[]profile.Step { return &t.steps }, func(x *profile.Step, k *kept) bool {
		x.Event = j.event(x.Event, k)
		return j.row(&x.Row, k) && j.time(&x.Time, k)
	})
	f.Fingerprint = joined(j, func(t *tables) *[]trace.Slice { return &t.prints }, func(x *trace.Slice, k *kept) bool {
		return j.track(&x.Track, k) && j.time(&x.Time, k)
	})
	for _, x := range c.diags {
		c.opt.Diags.Add(trace.Diag{Severity: x.severity, Code: x.code, Count: x.count, Msg: x.msg,
			Pos: trace.Pos{File: c.name, Offset: x.offset}})
	}
	return f
}

// readHeaders reads what the documents say about themselves.
func (c *collector) readHeaders(m *profile.Meta) {
	for i := range c.docs {
		d := &c.docs[i]
		kineto, own := false, false
		for _, x := range d.header {
			kineto = kineto || x.key == "schemaVersion"
			if base, ok := baseOf(x.key, x.value); ok {
				d.base, d.known = base, true
			}
			if x.key == "metadata" {
				if base, ok := ownBase(x.value); ok {
					d.base, d.known, own = base, true, true
				}
			}
			if err := readHeader(m, x.key, x.value); err != nil {
				c.report(trace.Notice, "trace-header", x.offset, 1, x.key+" is not as it should be; used in part: "+err.Error())
			}
		}
		if base := c.opt.Base; !d.known && base != 0 {
			d.base, d.known = base, true
		}
		d.own, d.unlinked = own, own && d.drawn
		// Kineto sets times before its base to 0.
		d.dropZero = kineto && !own && d.zero.n > 0 && (d.known || d.absolute.n > 0)
	}
}

// clocks finds out what the times count from, and their bounds.
func (c *collector) clocks(f *profile.Profile) {
	var all bounds
	for i := range c.docs {
		d := &c.docs[i]
		shifted := func(b bounds) bounds {
			b.first += trace.Time(d.base)
			b.last += trace.Time(d.base)
			return b
		}
		relative := d.relative
		if !d.dropZero {
			relative.merge(d.zero)
		} else {
			c.report(trace.DataLoss, "trace-clock-zero", d.zeroAt, d.zero.n,
				"an event is at time 0, which is what the profiler makes of a clock that failed; left out")
		}
		all.merge(shifted(relative))
		all.merge(d.absolute)
		switch {
		case d.known:
			if f.Meta.Base == 0 {
				f.Meta.Base = d.base
			}
			f.Meta.Origin = profile.OriginUnix
		case d.absolute.n > 0:
			f.Meta.Origin = profile.OriginUnix
		case relative.n > 0:
			c.report(trace.Notice, "trace-no-base", 0, 1, "times are relative, and the file does not say to what")
		}
	}
	for i := range c.docs { // one that is unknown makes all of them useless
		if d := &c.docs[i]; !d.known && d.absolute.n == 0 && d.relative.n+d.zero.n > 0 {
			f.Meta.Origin = profile.OriginUnknown
		}
	}
	f.First, f.Last = all.first, all.last
}

// A where is what metadata events name: a process if tid is "", else a thread of
// it or a stream.
type where struct{ part, pid, tid string }

func (r *rowID) where() where { return where{r.part, r.pid, r.tid} }

// finishRows fills f.Rows, and returns the numbers of rows there.
func (c *collector) finishRows(f *profile.Profile) (to []int32) {
	known := map[where]int32{} // the row that unspecific events are on
	for _, l := range [...]lane{laneStream, laneThread} {
		for i, id := range c.rowIDs {
			if id.lane == l {
				known[id.where()] = int32(i)
			}
		}
	}
	number := make([]int32, len(c.rowIDs))
	for i := range number {
		number[i] = -1
	}
	to = make([]int32, len(c.rowIDs))
	var ids []*rowID
	for i, id := range c.rowIDs {
		row := int32(i)
		if id.lane == laneAny {
			if other, ok := known[id.where()]; ok {
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
		f.Meta.Rank = -1 // is that of the first part, as SGLang merges headers
	}
	return to
}

// mostParts is of how many ranks a file may be: each is compared with the others.
const mostParts = 1024

// joinParts makes one rank of a file that has more parts than anybody merges: what is
// written in front of its pids are no ranks.
func (c *collector) joinParts(rows []profile.Row) {
	parts := map[string]bool{}
	for i := range rows {
		parts[rows[i].Part] = true
	}
	if len(parts) <= mostParts {
		return
	}
	c.report(trace.Notice, "trace-parts", 0, 1, fmt.Sprintf("pids are of more than %d ranks in one file; taken as processes of one", mostParts))
	for i := range rows {
		if r := &rows[i]; r.Part != "" {
			r.PIDText, r.Part = "["+r.Part+"] "+r.PIDText, ""
		}
	}
}

// namedRows returns rows with what metadata tells about them.
func (c *collector) namedRows(ids []*rowID) (rows []profile.Row) {
	processes, threads := map[where]*profile.Row{}, map[where]*profile.Row{}
	for _, n := range c.names {
		table, key := processes, where{part: n.part, pid: n.pid}
		if strings.HasPrefix(n.what, "thread_") {
			table, key.tid = threads, n.tid
		}
		if table[key] == nil {
			table[key] = &profile.Row{}
		}
		n.apply(table[key])
	}
	for _, id := range ids {
		row := id.row()
		if p := processes[where{part: id.part, pid: id.pid}]; p != nil {
			row.Process, row.Labels, row.ProcessSort = p.Process, p.Labels, p.ProcessSort
		}
		if t := threads[id.where()]; t != nil && id.lane <= laneStream {
			row.Name, row.Sort = t.Name, t.Sort
			if id.lane == laneAny && strings.HasPrefix(strings.ToLower(t.Name), "stream ") {
				row.Kind = profile.RowStream // though nothing happened there
			}
		}
		if _, isNumber := jsonscan.Int([]byte(id.tid)); row.Name == "" && !isNumber && id.lane <= laneStream {
			row.Name = id.tid
		}
		rows = append(rows, row)
	}
	return rows
}

// apply puts a name where it belongs; an empty one says nothing.
func (n *rowName) apply(r *profile.Row) {
	switch n.what {
	case "process_name":
		if n.text != "" {
			r.Process = n.text
		}
	case "process_labels":
		if n.text != "" {
			r.Labels = n.text
		}
	case "process_sort_index":
		r.ProcessSort = n.number
	case "thread_name":
		if n.text != "" {
			r.Name = n.text
		}
	case "thread_sort_index":
		r.Sort = n.number
	}
}

// A joiner puts the tables of batches together.
type joiner struct {
	*collector
	rows  []int32 // by those of the collector; outside is none
	moved []int32 // new numbers of events; nil if they are the same
}

// joined returns the table of all batches, with every record fixed; those for
// which fix returns false are left out. Batches are freed on the way.
func joined[T any](j joiner, of func(*tables) *[]T, fix func(x *T, k *kept) bool) []T {
	n := 0
	for i := range j.kept {
		n += len(*of(&j.kept[i].tables))
	}
	if n == 0 {
		return nil
	}
	out := memory.Make[T](n)[:0]
	for i := range j.kept {
		k := &j.kept[i]
		for _, x := range *of(&k.tables) {
			if out = append(out, x); !fix(&out[len(out)-1], k) {
				out = out[:len(out)-1]
			}
		}
		*of(&k.tables) = nil
	}
	return out
}

// outside is the number of a row that is left out.
const outside = -1

// row numbers a row as the file does, and tells whether it is kept.
func (j joiner) row(row *int32, k *kept) bool {
	*row = j.rows[k.rows[*row]]
	return *row != outside
}

// track is row for tables that the timeline has, too.
func (j joiner) track(track *trace.TrackID, k *kept) bool {
	row := int32(*track)
	kept := j.row(&row, k)
	*track = trace.TrackID(row)
	return kept
}

// time moves a time to the clock of the file. It returns false if the time was
// lost.
func (j joiner) time(t *trace.Time, k *kept) bool {
	d := &j.docs[k.doc]
	if *t == 0 && d.dropZero {
		return false
	}
	if *t < absoluteFrom {
		*t += trace.Time(d.base)
	}
	return true
}

// events returns the slices. Those that the filter leaves out once their end is
// known are left out now.
func (j *joiner) events() []trace.Slice {
	f := &j.opt.Filter
	late := j.paired && (f.MinDur > 0 || f.From != 0 || f.To != 0)
	drops := late
	for i := range j.docs {
		drops = drops || j.docs[i].dropZero
	}
	drops = drops || slices.Contains(j.rows, outside)
	n := int32(0)
	return joined(*j, func(t *tables) *[]trace.Slice { return &t.events }, func(x *trace.Slice, k *kept) bool {
		keep := j.track(&x.Track, k) && j.time(&x.Time, k)
		if late && keep {
			keep = x.Dur >= f.MinDur && (f.From == 0 || x.End() >= f.From) && (f.To == 0 || x.Time <= f.To)
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

// event returns the number of an event of a batch in the file.
func (j joiner) event(i int32, k *kept) int32 {
	if i == profile.NoEvent {
		return profile.NoEvent
	}
	i += int32(k.events0)
	if j.moved != nil {
		return j.moved[i]
	}
	return i
}

func (j joiner) link(x *profile.Link, k *kept) bool {
	if j.docs[k.doc].unlinked {
		return false
	}
	if x.Event < profile.NoEvent {
		if j.docs[k.doc].dropZero {
			return false
		}
		x.Event = -zeroEvent - x.Event
	}
	x.Event = j.event(x.Event, k)
	return j.row(&x.Row, k)
}
