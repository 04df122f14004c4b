package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Version is that of some software in a run, and on how many ranks or processes it ran.
type Version struct {
	profile.Version
	N int
}

// versionsOf lists the versions that inputs tell of: profilers by rank, and dumps, where
// service.version says it, by process.
func versionsOf(m *finders.Measured) (list []Version) {
	count := map[profile.Version]int{}
	if m.Of.Profiles != nil {
		for i := range m.Of.Profiles.Homes {
			for _, v := range m.Of.Profiles.Homes[i].Versions {
				count[v]++
			}
		}
	}
	if s := m.Of.Requests; s != nil {
		for i := range s.Writers {
			if w := &s.Writers[i]; w.Release != "" {
				count[profile.Version{Of: cmp.Or(s.Syms.Name(w.Service), "server"), Is: w.Release}]++
			}
		}
	}
	for v, n := range count {
		list = append(list, Version{v, n})
	}
	slices.SortFunc(list, func(a, b Version) int { return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Is, b.Is)) })
	return list
}

// A Use is when a version was seen.
type Use struct {
	profile.Version
	Runs        int
	First, Last trace.Time // begin of the first and of the last of these runs; 0 is unknown
	// Before is the version of the same software that was seen last before First; "" is none.
	Before string
}

// String says that the version came after another one: "GPU driver went from 550.54 to 560.28".
func (u *Use) String() string { return fmt.Sprintf("%s went from %s to %s", u.Of, u.Before, u.Is) }

// uses lists the versions of all runs, by software and first use.
func uses(runs []*Run) (list []Use) {
	index := map[profile.Version]int{}
	for _, r := range runs {
		for _, v := range r.versions {
			i, ok := index[v.Version]
			if !ok {
				i = len(list)
				index[v.Version] = i
				list = append(list, Use{Version: v.Version, First: r.From, Before: lastOf(list, v.Of)})
			}
			list[i].Runs++
			list[i].Last = r.From
		}
	}
	slices.SortStableFunc(list, func(a, b Use) int { return cmp.Compare(a.Of, b.Of) })
	return list
}

// lastOf returns the version of some software that was seen last.
func lastOf(list []Use, of string) (before string) {
	last := trace.Time(0)
	for i := range list {
		if u := &list[i]; u.Of == of && (before == "" || u.Last >= last) {
			before, last = u.Is, u.Last
		}
	}
	return before
}
