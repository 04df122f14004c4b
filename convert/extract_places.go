package convert

import (
	"iter"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/profile"
)

// writePlaces writes the rank that each row of the captures belongs to: by thread for profiles held
// in memory, by process for inputs whose rows are walked.
func (s *solution) writePlaces() {
	captures := map[*inputs.ProcessProfile]map[string]*ranks.Capture{}
	tracks := map[*ranks.Capture]int{}
	for i, r := range s.of.Tracks {
		for _, c := range r.Captures {
			if captures[c.File] == nil {
				captures[c.File] = map[string]*ranks.Capture{}
			}
			captures[c.File][c.Part], tracks[c] = c, i
		}
	}
	processes := map[*inputs.Source]int32{} // the number of files seen of each source
	for _, f := range s.of.Files {
		process := processes[f.Source]
		processes[f.Source]++
		for thread := range f.Rows {
			c := captures[f][f.Rows[thread].Part]
			if c == nil {
				continue // a copy of another capture
			}
			row := s.place(f.Source, tracks[c])
			row.Process, row.Thread, row.Clock = process, int32(thread), s.evidence.ClockOf(c)
			s.Solution.Place(row)
		}
	}
	for i := range s.evidence.Walked {
		s.writePlacesOfWalk(&s.evidence.Walked[i])
	}
}

// place returns a row for a rank.
func (s *solution) place(x *inputs.Source, rank int) dataset.PlaceRow {
	row := dataset.PlaceRow{Capture: x.Input.Capture().ID(), Process: -1, Thread: -1, PID: -1, Rank: s.evidence.Profiles.Ranks[rank], RankOrder: int32(rank)}
	if rank < len(s.of.Tracks) {
		row.Host = s.hostOf(rank)
	}
	return row
}

// writePlacesOfWalk writes the rank of each process that has rows in an export.
func (s *solution) writePlacesOfWalk(w *Walked) {
	clock := ""
	for _, r := range s.of.Tracks {
		for _, c := range r.Captures {
			if c.File.Source == w.Source {
				clock = s.evidence.ClockOf(c) // one clock for all processes of the machine
			}
		}
	}
	seen := map[int32]bool{}
	visit := func(e *profile.Event) bool {
		if !seen[e.PID] {
			seen[e.PID] = true
			row := s.place(w.Source, int(e.Rank))
			row.PID, row.Clock = int64(e.PID), clock
			s.Solution.Place(row)
		}
		return true
	}
	w.All.Kernels(func(k *profile.Kernel) bool { return visit(&k.Event) })
	w.All.Copies(func(c *profile.Copy) bool { return visit(&c.Event) })
	w.All.Calls(func(c *profile.Call) bool { return visit(&c.Event) })
	w.All.Ranges(func(r *profile.Range) bool { return visit(&r.Event) })
}

// writeRepeated writes the rows of exports that traces of the same processes also have.
func (s *solution) writeRepeated() {
	for _, w := range s.evidence.Walked {
		if w.Counted == w.All {
			continue
		}
		row := dataset.RepeatedRow{Capture: w.Source.Input.Capture().ID()}
		write := func(kind string, e *profile.Event) {
			row.Kind, row.PID, row.Start, row.Dur, row.Correlation = kind, int64(e.PID), int64(e.Start), int64(e.End-e.Start), e.Correlation
			row.Name = s.evidence.Profiles.Syms.Name(e.Name)
			s.Solution.Repeated(row)
		}
		eachLeftOut(w.All.Kernels, w.Counted.Kernels, func(k *profile.Kernel) { write(dataset.KernelKind(k), &k.Event) })
		eachLeftOut(w.All.Copies, w.Counted.Copies, func(c *profile.Copy) { write("copy", &c.Event) })
		eachLeftOut(w.All.Calls, w.Counted.Calls, func(c *profile.Call) { write("call", &c.Event) })
		eachLeftOut(w.All.Ranges, w.Counted.Ranges, func(r *profile.Range) { write("range", &r.Event) })
	}
}

// eachLeftOut calls f for each element of all that some lacks; some is a subsequence of all.
func eachLeftOut[T comparable](all, some iter.Seq[*T], f func(*T)) {
	next, stop := iter.Pull(some)
	defer stop()
	var kept T
	advance := func() (ok bool) {
		p, ok := next()
		if ok {
			kept = *p
		}
		return ok
	}
	any := advance()
	for x := range all {
		if any && *x == kept {
			any = advance()
			continue
		}
		f(x)
	}
}
