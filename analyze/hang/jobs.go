package hang

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A job is the dumps of flight recorders that one job left behind, at one hang.
type job struct {
	dumps []*recorder.FlightDump
	ranks map[int32]bool
	label string // what distinguishes it from others: a folder, a host
	last  trace.Time
}

// jobsOf divides dumps into jobs if several have the same ranks, the last job first: by folder, by the
// ranks of their groups, by the file name in front of the rank, or by time. If no rank has two dumps,
// there is one job. ok is false if nothing tells the jobs apart.
func jobsOf(dumps []*recorder.FlightDump) (jobs []*job, ok bool) {
	folder := func(d *recorder.FlightDump) string { return filepath.ToSlash(filepath.Dir(d.File)) }
	world := func(d *recorder.FlightDump) string {
		for i := range d.Groups {
			if g := &d.Groups[i]; isWorld(g) && g.Ranks != nil {
				return rankKey(g)
			}
		}
		return ""
	}
	name := func(d *recorder.FlightDump) string { return strings.TrimRight(filepath.ToSlash(d.File), "0123456789") }
	for _, label := range []func(*recorder.FlightDump) string{
		func(*recorder.FlightDump) string { return "" },
		folder,
		func(d *recorder.FlightDump) string { return folder(d) + "\x00" + world(d) },
		func(d *recorder.FlightDump) string { return name(d) + "\x00" + world(d) },
	} {
		if jobs = split(dumps, label); jobs != nil {
			return jobs, true
		}
	}
	if jobs = byTime(dumps); jobs != nil {
		return jobs, true
	}
	return []*job{{dumps: dumps}}, false
}

// split divides dumps by a label; nil if a job would have two dumps of a rank.
func split(dumps []*recorder.FlightDump, label func(*recorder.FlightDump) string) []*job {
	by := map[string]*job{}
	var list []*job
	for _, d := range dumps {
		key := label(d)
		j := by[key]
		if j == nil {
			j = &job{ranks: map[int32]bool{}, label: key}
			by[key], list = j, append(list, j)
		}
		if !j.add(d) {
			return nil
		}
	}
	return newestFirst(list)
}

// add adds a dump; ok is false if the job has one of that rank.
func (j *job) add(d *recorder.FlightDump) (ok bool) {
	if j.ranks[d.Rank] {
		return false
	}
	j.ranks[d.Rank] = true
	j.dumps = append(j.dumps, d)
	j.last = max(j.last, d.Time)
	return true
}

// between is the least time between two hangs, in ns: dumps of one hang are written together.
const between = trace.Time(60e9)

// byTime begins a new job where a rank has another dump; nil if the jobs are not far enough apart in time.
func byTime(dumps []*recorder.FlightDump) []*job {
	sorted := slices.Clone(dumps)
	slices.SortStableFunc(sorted, func(a, b *recorder.FlightDump) int { return cmp.Compare(a.Time, b.Time) })
	j := &job{ranks: map[int32]bool{}}
	list := []*job{j}
	for _, d := range sorted {
		if j.add(d) {
			continue
		}
		if d.Time == 0 || d.Time-j.last < between {
			return nil
		}
		j = &job{ranks: map[int32]bool{}}
		list = append(list, j)
		j.add(d)
	}
	return newestFirst(list)
}

func newestFirst(list []*job) []*job {
	slices.SortStableFunc(list, func(a, b *job) int { return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(a.label, b.label)) })
	return list
}

// name returns the name of a job: its first file.
func (j *job) name() string { return j.dumps[0].File }
