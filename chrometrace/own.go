package chrometrace

import (
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A merged trace that Write wrote is read as the ranks that it was made of. Its numbers of processes and
// threads are invented, so that the metadata events that name them also carry the true numbers, and the rank.

// ownRows assigns the rows of ranks to parts, if our writer wrote the file, and sets rows that only repeat them
// to outside in rows.
func (c *collector) ownRows(f *profile.Profile, rows []int32) {
	processes, threads := map[string]parse.Identity{}, map[string]parse.Identity{}
	for _, n := range c.names {
		if n.Own.Part != "" {
			processes[n.PID] = n.Own
		}
		if n.Own.PID != "" {
			threads[n.TID] = n.Own
		}
	}
	if len(c.docs) != 1 || !c.docs[0].own {
		return
	}
	if len(processes) == 0 {
		c.Diags.Report(trace.OwnDrawing, 0, 1)
		return
	}
	c.docs[0].unlinked = false // correlations are unique within each part
	f.Meta.Parts = map[string]string{}
	repeats, count := make([]bool, len(f.Rows)), 0
	for i := range f.Rows {
		r := &f.Rows[i]
		if process, ok := processes[r.PIDText]; ok {
			r.Part, f.Meta.Parts[process.Part] = process.Part, process.Label
			thread, ok := threads[r.TIDText]
			switch {
			case r.Kind == profile.RowCounter:
			case ok:
				r.PIDText, r.TIDText = thread.PID, thread.TID
				r.PID, _ = jsonscan.Int([]byte(r.PIDText))
				r.TID, _ = jsonscan.Int([]byte(r.TIDText))
			case r.Kind == profile.RowThread:
				r.Kind = profile.RowOther
			}
			continue
		}
		switch group, _, _ := strings.Cut(r.Process, " > "); strings.TrimSpace(group) {
		case profile.SideBySide:
			count++
			fallthrough
		case strings.TrimSpace(profile.Findings), strings.TrimSpace(profile.CriticalPath), strings.TrimSpace(profile.Load): // merging draws these again
			repeats[i] = true
		}
	}
	for i, row := range rows {
		if repeats[row] {
			rows[i] = outside
		}
	}
	if count > 0 {
		c.Diags.Report(trace.OwnRowsRepeated, 0, count, profile.SideBySide)
	}
}

// redrawn returns a function that reports whether a merge draws an arrow again: those of launches and of
// collectives, if our writer wrote the file.
func (c *collector) redrawn(f *profile.Profile) func(*profile.Arrow) bool {
	if f.Meta.Parts == nil || !c.docs[0].own {
		return func(*profile.Arrow) bool { return false }
	}
	return func(a *profile.Arrow) bool {
		if a.Event != profile.NoEvent {
			return f.Events[a.Event].Correlation != 0
		}
		name := c.opt.Syms.Name(a.Name)
		return name == "launch" || name == "collective"
	}
}
