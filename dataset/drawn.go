package dataset

import (
	"strconv"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile"
)

// drawn returns the profiles of a recording that is walked, with the events that a filter
// keeps, for timelines without the original: with what the capture has, and under names of its
// own.
func (c *Capture) drawn(name string, opt *format.Options) ([]*profile.Profile, error) {
	index := *opt
	index.Filter = profile.Filter{IndexOnly: true}
	outlines, err := c.readProfiles(name, "", &index)
	if err != nil {
		return nil, err
	}
	plain := *opt // of rows that are walked, no fingerprint is known
	plain.Filter.Fingerprint = false
	profiles, err := c.readProfiles(name, collectivesView, &plain)
	for _, p := range profiles {
		for _, o := range outlines {
			if o.Meta.PID == p.Meta.PID {
				p.First, p.Last, p.Total = o.First, o.Last, o.Total
			}
		}
	}
	return profiles, err
}

// A walkedSpot is where rows of a recording that is walked lie, which name no thread of a
// profile, but process and thread, or device and stream.
type walkedSpot struct {
	profiles   map[int64]*profile.Profile // by pid
	rows       map[*profile.Profile]map[profile.Row]int32
	kind       profile.RowKind
	word       string // for names of new rows
	pid        *cell
	above, own *cell // process or device, and thread or stream
}

func (r *restoring) walkedSpot(file *file, in *rows) *walkedSpot {
	w := &walkedSpot{profiles: map[int64]*profile.Profile{}, rows: map[*profile.Profile]map[profile.Row]int32{}, pid: in.column("pid")}
	w.kind, w.word, w.above, w.own = profile.RowThread, "thread ", w.pid, in.column("tid")
	if file == kernelsFile || file == copiesFile {
		w.kind, w.word, w.above, w.own = profile.RowStream, "stream ", in.column("device"), in.column("stream")
	}
	for _, p := range r.profiles {
		known := map[profile.Row]int32{}
		for i, row := range p.Rows {
			known[profile.Row{Kind: row.Kind, PID: row.PID, TID: row.TID}] = int32(i)
		}
		w.profiles[p.Meta.PID], w.rows[p] = p, known
	}
	return w
}

// place returns the profile of the row under way, nil if there is none, and its row there, which
// is added if it is new.
func (w *walkedSpot) place() (*profile.Profile, int32) {
	p := w.profiles[w.pid.int()]
	if p == nil {
		return nil, 0
	}
	row := profile.Row{Kind: w.kind, PID: w.above.int(), TID: w.own.int()}
	i, ok := w.rows[p][row]
	if !ok {
		i = int32(len(p.Rows))
		w.rows[p][row] = i
		row.PIDText, row.TIDText = strconv.FormatInt(row.PID, 10), strconv.FormatInt(row.TID, 10)
		row.Name = w.word + row.TIDText
		p.Rows = append(p.Rows, row)
	}
	return p, i
}
