package ranks

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/profile"
)

// A world has the facts about the ranks of a job.
type world struct {
	size    int            // from the headers of PyTorch traces; 0 is unknown
	numbers map[int32]bool // of the ranks that were recorded
	traced  bool           // PyTorch traces of some ranks exist
	unsure  bool           // some rank's number is unknown
	byTP    bool           // all ranks are named by TP rank
}

// MissingRanks returns the ranks missing from worlds whose headers give a size, or whose numbers have gaps.
// Exports alone are not enough, unless all processes are named by TP rank: otherwise, their numbers may be
// ranks in some communicator.
func (m *Assignment) MissingRanks() []profile.MissingRanks { return missingOf(m.worlds()) }

func missingOf(worlds []*world) []profile.MissingRanks {
	var out []profile.MissingRanks
	for _, w := range worlds {
		if w.unsure || !w.traced && !w.byTP {
			continue
		}
		a := profile.MissingRanks{Seen: len(w.numbers), Size: w.size}
		if w.size == 0 && a.Seen > 1 {
			a.AtLeast = true
			for n := range w.numbers {
				a.Size = max(a.Size, int(n)+1)
			}
		}
		w.nameMissing(&a)
		if len(a.Missing) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// nameMissing lists the missing ranks, as ranges between recorded ones.
func (w *world) nameMissing(a *profile.MissingRanks) {
	const most = 32 // ranges, more than anybody reads
	next := 0
	for _, n := range append(slices.Sorted(maps.Keys(w.numbers)), int32(a.Size)) {
		end := min(int(n), a.Size)
		switch {
		case end <= next:
		case len(a.Missing) < most:
			a.Missing = append(a.Missing, w.namesOf(int32(next), int32(end-1)))
		default:
			a.More += end - next
		}
		next = max(next, int(n)+1)
	}
}

// namesOf names the ranks from first to last.
func (w *world) namesOf(first, last int32) string {
	switch last {
	case first:
		return w.nameOf(first)
	case first + 1:
		return w.nameOf(first) + ", " + w.nameOf(last)
	}
	return w.nameOf(first) + " to " + w.nameOf(last)
}

func (w *world) nameOf(n int32) string {
	if w.byTP {
		return fmt.Sprintf("TP%d", n)
	}
	return fmt.Sprintf("rank %d", n)
}

// Pairs returns the jobs that have two ranks, both of which were recorded, according to the headers of PyTorch traces.
func (m *Assignment) Pairs(jobs []int) map[int]bool {
	recorded, pairs := map[int]int{}, map[int]bool{}
	for i, r := range m.Tracks {
		if r.Captures[0].worldSize() == 2 {
			recorded[jobs[i]]++
			pairs[jobs[i]] = recorded[jobs[i]] == 2
		}
	}
	return pairs
}

// worlds returns the worlds of all jobs. Jobs of the same size without any common rank number may be parts
// of one world, as replicas of vLLM are, and are treated as one.
func (m *Assignment) worlds() []*world {
	var jobs, out []*world
	for i, job := range m.Jobs() {
		for len(jobs) <= job {
			jobs = append(jobs, &world{numbers: map[int32]bool{}, byTP: true})
		}
		jobs[job].add(m.Tracks[i])
	}
	for _, job := range jobs {
		joined := false
		for _, w := range out {
			if joined = w.join(job); joined {
				break
			}
		}
		if !joined {
			out = append(out, job)
		}
	}
	return out
}

// add adds a rank.
func (w *world) add(r *Track) {
	n, traced := r.Global(), false
	for _, c := range r.Captures {
		if !c.IsOfMachine() {
			traced = true
			w.size = max(w.size, int(c.File.Meta.WorldSize))
		}
	}
	if n < 0 && !traced && r.Devices == 0 {
		return // a process of the machine that is not a rank
	}
	w.traced = w.traced || traced
	w.byTP = w.byTP && int32(r.Rank.TP) == n
	if n < 0 {
		w.unsure = true
		return
	}
	w.numbers[n] = true
}

// join merges o into w, unless both have a rank of the same number.
func (w *world) join(o *world) bool {
	if w.size != o.size {
		return false
	}
	for n := range o.numbers {
		if w.numbers[n] {
			return false
		}
	}
	for n := range o.numbers {
		w.numbers[n] = true
	}
	w.traced, w.unsure, w.byTP = w.traced || o.traced, w.unsure || o.unsure, w.byTP && o.byTP
	return true
}
