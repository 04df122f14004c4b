package naming

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// same reports whether two files are of one rank: consecutive captures of it, such as SGLang's EXTEND and
// DECODE. If their times overlap, which only the caller can see, they are of two deployments with unknown
// hosts. A host or part that only one of them knows does not distinguish them; without a part that both
// know, they are the same only if they are of one process, by pid and host.
func same(a, b *Resolved) bool {
	if a.NotRank || b.NotRank || a.Name.Role != b.Name.Role ||
		a.hostKnown() && b.hostKnown() && !sameHost(a.Host, b.Host) {
		return false
	}
	shared, differ := compare(a.Rank, b.Rank)
	return !differ && (shared > 0 || a.PID != 0 && a.PID == b.PID && a.hostKnown() && b.hostKnown())
}

// A Group is the files of one rank.
type Group struct {
	Rank  trace.Rank
	Host  string
	Role  string
	Files []int // indexes, by the times in their names, then stage, part, and path
}

// Captures groups the files by rank. Files of no rank are in no group; a file whose rank is unknown, or
// that fits several groups, gets its own. Groups are sorted by rank, whatever the order of files.
func Captures(files []Resolved) []Group {
	best := make([]int, 0, len(files))
	for i := range files {
		if !files[i].NotRank {
			best = append(best, i)
		}
	}
	// Files with the most information come first, so that a file with little is compared with all groups
	// that it might belong to.
	slices.SortStableFunc(best, func(i, j int) int {
		a, b := &files[i], &files[j]
		return cmp.Or(-order.Bool(a.hostKnown(), b.hostKnown()), cmp.Compare(b.Rank.Known(), a.Rank.Known()),
			a.Rank.Compare(b.Rank), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
	})
	var groups []Group
	var common []Resolved // the combined facts of each group
	index := groupIndex{}
	for _, i := range best {
		g := index.home(common, &files[i])
		if g < 0 {
			g = len(groups)
			groups, common = append(groups, Group{}), append(common, files[i])
			index.add(g, nil, files[i].parts())
		}
		known := common[g].parts()
		common[g].Rank, common[g].Host = common[g].Rank.Fill(files[i].Rank), cmp.Or(common[g].Host, files[i].Host)
		index.add(g, known, common[g].parts())
		groups[g].Files = append(groups[g].Files, i)
	}
	for g := range groups {
		groups[g].Rank, groups[g].Host, groups[g].Role = common[g].Rank, common[g].Host, common[g].Name.Role
		slices.SortStableFunc(groups[g].Files, func(i, j int) int { return inTime(&files[i], &files[j]) })
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(a.Rank.Compare(b.Rank), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Role, b.Role),
			cmp.Compare(files[a.Files[0]].Path, files[b.Files[0]].Path))
	})
	return groups
}

// A groupIndex finds the groups that share a part of the rank, or the process, with a file: no other group
// can be the same.
type groupIndex map[groupPart][]int

// A groupPart is one part of a rank, or a process ID.
type groupPart struct {
	part   int // index in fields; len(fields) is the process
	number int64
}

// parts lists the facts about rank and process. Files of one group share at least one.
func (r *Resolved) parts() []groupPart {
	var parts []groupPart
	known := fields(&r.Rank)
	for i, n := range known {
		if n >= 0 {
			parts = append(parts, groupPart{i, int64(n)})
		}
	}
	if r.PID != 0 {
		parts = append(parts, groupPart{len(known), r.PID})
	}
	return parts
}

// add records the new facts about group g, besides those known before.
func (x groupIndex) add(g int, before, now []groupPart) {
	for _, p := range now {
		if !slices.Contains(before, p) {
			x[p] = append(x[p], g)
		}
	}
}

// home returns the only group that f fits, or -1.
func (x groupIndex) home(groups []Resolved, f *Resolved) int {
	found := -1
	for _, p := range f.parts() {
		for _, g := range x[p] {
			if g == found || !same(&groups[g], f) {
				continue
			}
			if found >= 0 {
				return -1
			}
			found = g
		}
	}
	return found
}

// inTime compares captures of one rank by time.
func inTime(a, b *Resolved) int {
	stage := func(n *Name) int {
		if n.Stage == "DECODE" || n.Stage == "decode" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.Name.Time, b.Name.Time), cmp.Compare(a.Name.Run, b.Name.Run),
		cmp.Compare(stage(&a.Name), stage(&b.Name)), cmp.Compare(a.Name.Part, b.Name.Part), cmp.Compare(a.Path, b.Path))
}
