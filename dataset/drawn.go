package dataset

import (
	"strconv"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A drawing makes profiles with events of rows that are walked, for timelines without the
// original: with what the capture has, and under names of its own.
type drawing struct {
	*restoring
	profile.Stream
	rows       []map[profile.Row]int32 // by profile
	categories map[trace.Sym]bool
}

// drawn returns the profiles of a recording that is walked, with the events that a filter
// keeps.
func (c *Capture) drawn(name string, opt *format.Options) ([]*profile.Profile, error) {
	index := *opt
	index.Filter = profile.Filter{IndexOnly: true}
	outlines, err := c.readProfiles(name, "", &index)
	if err != nil {
		return nil, err
	}
	profiles, err := c.readProfiles(name, collectivesView, &index)
	if err != nil {
		return nil, err
	}
	d := &drawing{restoring: &restoring{Capture: c, opt: opt, profiles: profiles}, categories: map[trace.Sym]bool{}}
	ranks := map[int32]int32{}
	for i, p := range profiles {
		ranks[int32(p.Meta.PID)] = int32(i)
		known := map[profile.Row]int32{}
		for n, row := range p.Rows {
			known[profile.Row{Kind: row.Kind, PID: row.PID, TID: row.TID}] = int32(n)
		}
		d.rows = append(d.rows, known)
		for _, o := range outlines {
			if o.Meta.PID == p.Meta.PID {
				p.First, p.Last, p.Total = o.First, o.Last, o.Total
			}
		}
	}
	if opt.Filter.IndexOnly {
		return profiles, nil
	}
	d.Stream = c.newStream(name, opt, func(pid int32) int32 {
		if n, ok := ranks[pid]; ok {
			return n
		}
		return -1
	})
	d.events()
	return profiles, nil
}

// row returns the number of a thread or stream of a profile, which is added if it is new.
func (d *drawing) row(rank int32, kind profile.RowKind, pid, tid int64, name string) int32 {
	key := profile.Row{Kind: kind, PID: pid, TID: tid}
	n, ok := d.rows[rank][key]
	if !ok {
		p := d.profiles[rank]
		n = int32(len(p.Rows))
		d.rows[rank][key] = n
		p.Rows = append(p.Rows, profile.Row{Kind: kind, PID: pid, TID: tid, PIDText: strconv.FormatInt(pid, 10), TIDText: strconv.FormatInt(tid, 10), Name: name})
	}
	return n
}

// add adds an event, if the filter keeps it.
func (d *drawing) add(e *profile.Event, category string, row int32) {
	s := trace.Slice{Time: e.Start, Dur: e.Dur(), Track: trace.TrackID(row), Name: e.Name, Cat: d.opt.Syms.Intern(category)}
	if !d.keeps(&s, d.categories) {
		return
	}
	p := d.profiles[e.Rank]
	if e.Correlation != 0 {
		link := profile.Link{Event: int32(len(p.Events)), Row: row, Correlation: e.Correlation}
		if category == profile.CallCategories[0] {
			p.Launches = append(p.Launches, link)
		} else {
			p.Work = append(p.Work, link)
		}
	}
	p.Events = append(p.Events, s)
}

// onDevice adds what a stream of a device did.
func (d *drawing) onDevice(e *profile.Event, category string, device int32, stream uint32) bool {
	name := "stream " + strconv.FormatUint(uint64(stream), 10)
	d.add(e, category, d.row(e.Rank, profile.RowStream, int64(device), int64(stream), name))
	return true
}

// onThread adds what a thread did.
func (d *drawing) onThread(e *profile.Event, category string, tid int64) bool {
	name := "thread " + strconv.FormatInt(tid, 10)
	d.add(e, category, d.row(e.Rank, profile.RowThread, int64(e.PID), tid, name))
	return true
}

// events adds all events of the capture.
func (d *drawing) events() {
	d.Kernels(func(k *profile.Kernel) bool { return d.onDevice(&k.Event, profile.KernelCategory, k.Device, k.Stream) })
	d.Copies(func(c *profile.Copy) bool {
		category := profile.CopyCategories[0]
		if c.Kind.From == profile.NoMemory {
			category = profile.CopyCategories[1]
		}
		return d.onDevice(&c.Event, category, c.Device, c.Stream)
	})
	d.Calls(func(c *profile.Call) bool { return d.onThread(&c.Event, profile.CallCategories[0], c.TID) })
	d.Ranges(func(r *profile.Range) bool { return d.onThread(&r.Event, profile.AnnotationCategory, r.TID) })
	d.Frames(func(f *profile.Frame) bool { return d.onThread(&f.Event, profile.SystemCategory, f.TID) })
}
