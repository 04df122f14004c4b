package chrometrace

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// What this package writes of ranks, it reads as what it was made of. Numbers of
// processes and threads are made up by the writer, so that the events that name them
// tell the true ones, too, and which rank they are of.

// rankOf returns the track of the rank that track id is of; nil if it is of none.
func rankOf(tracks []trace.Track, id trace.TrackID, names []string) *trace.Track {
	for ; id != 0; id = tracks[id].Parent {
		group := &tracks[tracks[id].Parent]
		if tracks[id].Parent != 0 && group.Parent == 0 && names[group.Name] == profile.ByRank {
			return &tracks[id]
		}
	}
	return nil
}

// rankMembers returns what is told of a rank behind the name of a process.
func rankMembers(rank *trace.Track, names []string) string {
	if rank == nil {
		return ""
	}
	members := `,"part":` + quote(names[rank.Name])
	if host := names[rank.Host]; host != "" {
		members += `,"host":` + quote(host)
	}
	if text := rank.Rank.String(); text != "" {
		members += `,"rank":` + quote(text)
	}
	return members
}

// rowMembers returns what is told of a row of a rank behind its name. Those that are
// about the profiler have no numbers.
func rowMembers(t *trace.Track) string {
	if t.Kind != trace.KindStream && t.TID == 0 {
		return ""
	}
	return fmt.Sprintf(`,"pid":%d,"tid":%d`, t.PID, t.TID)
}

// An identity is what the writer tells of a process or a thread.
type identity struct {
	part, label string // of a process
	pid, tid    string // of a thread
}

// identity reads what the event that names a process or a thread tells of it.
func (p *parser) identity() identity {
	host, rank := p.textArg(argHost), p.textArg(argRank)
	between := ""
	if host != "" && rank != "" {
		between = "/"
	}
	return identity{part: p.masked(p.textArg(argPart)), label: host + between + rank, pid: p.textArg(argPID), tid: p.textArg(argTID)}
}

// ownRows makes parts of the rows of ranks, if this package wrote the file, and leaves
// out, in rows, those that repeat theirs.
func (c *collector) ownRows(f *profile.Profile, rows []int32) {
	processes, threads := map[string]identity{}, map[string]identity{}
	for _, n := range c.names {
		if n.own.part != "" {
			processes[n.pid] = n.own
		}
		if n.own.pid != "" {
			threads[n.tid] = n.own
		}
	}
	if len(c.docs) != 1 || !c.docs[0].own {
		return
	}
	if len(processes) == 0 {
		c.report(trace.Notice, "own-drawing", 0, 1, "this program drew it, of requests: what they were is in the dump that it was made of")
		return
	}
	c.docs[0].unlinked = false // correlations are those of the part
	f.Meta.Parts = map[string]string{}
	repeats, count := make([]bool, len(f.Rows)), 0
	for i := range f.Rows {
		r := &f.Rows[i]
		if process, ok := processes[r.PIDText]; ok {
			r.Part, f.Meta.Parts[process.part] = process.part, process.label
			thread, ok := threads[r.TIDText]
			switch {
			case r.Kind == profile.RowCounter:
			case ok:
				r.PIDText, r.TIDText = thread.pid, thread.tid
				r.PID, _ = jsonscan.Int([]byte(r.PIDText))
				r.TID, _ = jsonscan.Int([]byte(r.TIDText))
			case r.Kind == profile.RowThread:
				r.Kind = profile.RowOther
			}
		} else if strings.HasPrefix(r.Process, profile.SideBySide+" > ") {
			repeats[i] = true
			count++
		}
	}
	for i, row := range rows {
		if repeats[row] {
			rows[i] = outside
		}
	}
	if count > 0 {
		c.report(trace.Notice, "own-rows-repeated", 0, count, fmt.Sprintf("a row of %q repeats those of a rank; left out", profile.SideBySide))
	}
}

// redrawn tells which arrows a merge draws anew, if this package wrote the file: those
// of launches and of collectives.
func (c *collector) redrawn(f *profile.Profile) func(*profile.Arrow) bool {
	if f.Meta.Parts == nil {
		return func(*profile.Arrow) bool { return false }
	}
	linked := make([]bool, len(f.Events))
	for _, links := range [][]profile.Link{f.Launches, f.Work} {
		for _, l := range links {
			if l.Event != profile.NoEvent {
				linked[l.Event] = true
			}
		}
	}
	return func(a *profile.Arrow) bool {
		if a.Event != profile.NoEvent {
			return linked[a.Event]
		}
		name := c.parser.opt.Syms.Name(a.Name)
		return name == "launch" || name == "collective"
	}
}
