package nsysexport

import (
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
)

// Outline returns the facts about the processes of an export without reading
// what they did: profiles without events, by process id, which last from the first event of
// the export to the last.
func Outline(src *rows.Source) []*profile.Profile {
	r := newProfiler(src)
	for _, p := range src.Processes {
		r.file(p.PID)
	}
	for _, t := range src.Threads {
		r.file(t.PID)
	}
	for pid := range src.StreamUsers {
		r.file(pid)
	}
	for _, rank := range src.Ranks {
		r.file(rank.PID)
	}
	if len(r.profiles) == 0 {
		strangers(src, func(pid int32) { r.file(pid) })
	}
	var outlines []*profile.Profile
	first, last := src.Extent()
	for _, pid := range slices.Sorted(maps.Keys(r.profiles)) {
		p := r.profiles[pid]
		p.Profile.First, p.Profile.Last, p.Profile.Total = first, last, 1
		outlines = append(outlines, p.Profile)
	}
	return outlines
}

// strangers calls f for the processes of rows. It reads whole tables, which is for
// exports that name no process at all.
func strangers(src *rows.Source, f func(pid int32)) {
	st := NewStream(src, func(pid int32) int32 {
		f(pid)
		return -1
	})
	st.Kernels(func(*profile.Kernel) bool { return true })
	st.Copies(func(*profile.Copy) bool { return true })
	st.Calls(func(*profile.Call) bool { return true })
	st.Ranges(func(*profile.Range) bool { return true })
}
