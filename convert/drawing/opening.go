package drawing

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// maxPinned is how many rows are pinned at most: more would fill the screen.
const maxPinned = 12

// maxSamples is how many samples a counter has at most to be pinned. A viewer without a GPU takes
// 50 ms a frame for one of 50,000, and the same is among the load, in buckets.
const maxSamples = 20_000

// pinned are the rows that are pinned, the most telling first, by what their names begin
// with. Clocks of GPUs are pinned for findings only.
var pinned = []string{roleTracks[stepRole], roleTracks[computeRole], roleTracks[communicationRole], roleTracks[copyRole], "queued", "running", clockRow}

// clockRow is what rows of the clocks of GPUs are called.
var clockRow = series.Metrics[series.SMClock].Name

// tellsOf are the rows that show a finding about a kind of work: of other ranks and other
// findings, copies are not pinned.
var tellsOf = map[kernelname.Class]string{kernelname.ClassCommunication: roleTracks[communicationRole], kernelname.ClassMemory: roleTracks[copyRole]}

// noteOpening makes a finished trace say what to look at first: the rows of the ranks that
// findings are about, then those of one rank for each that do the same, in the time from
// which on something is wrong; else in the time of the profiles, if that is short.
func noteOpening(t *trace.Trace, findings []Finding, profiles inputs.Extent) *trace.Trace {
	o := trace.Opening{Pin: rowsToPin(t, findings)}
	o.From, o.To = timeToShow(t, findings, profiles)
	t.Attributes = append(t.Attributes, o.Attributes()...)
	return t
}

// A candidate is a row that may be pinned.
type candidate struct {
	track   trace.TrackID
	finding int // the first finding that is about its rank; the number of findings if none is
	what    int // index into pinned
}

// rowsToPin returns the paths of the rows to pin. Rows of one name cannot be told apart
// there: the first one is enough.
func rowsToPin(t *trace.Trace, findings []Finding) (paths []string) {
	names, samples := t.Syms.Names(), samplesOf(t)
	var all []candidate
	for id := 1; id < len(t.Tracks); id++ {
		what, rank, ok := strings.Cut(names[t.Tracks[id].Name], naming.Separator)
		k := slices.Index(pinned, what)
		if !ok || k < 0 || samples[id] > maxSamples || !isPinnable(t.Tracks, trace.TrackID(id), names) {
			continue
		}
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Rank == rank })
		if i < 0 && (isLane(rank) || doesAsOthers(rankOf(t.Tracks, trace.TrackID(id)))) {
			continue
		}
		told := i >= 0 && slices.ContainsFunc(findings, func(f Finding) bool { return f.Rank == rank && tellsOf[f.Shows] == what })
		if i < 0 {
			i = len(findings)
		}
		if told {
			k = -1
		} else if what == roleTracks[copyRole] || what == clockRow && i == len(findings) {
			continue
		}
		all = append(all, candidate{trace.TrackID(id), i, k})
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.finding, b.finding), cmp.Compare(a.what, b.what))
	})
	used := map[trace.Sym]bool{}
	for _, c := range all {
		if name := t.Tracks[c.track].Name; len(paths) < maxPinned && !used[name] {
			used[name] = true
			paths = append(paths, pathOf(t.Tracks, c.track, names))
		}
	}
	return paths
}

// doesAsOthers reports whether a rank does what a lower one does, too: one of a TP group, or any
// but the first where only numbers of ranks are known.
func doesAsOthers(r trace.Rank) bool { return r.TP > 0 || r.TP < 0 && r.Global > 0 }

// isLane reports whether a row has what its rank did beside the work in another row.
func isLane(rank string) bool { return laneNumber.MatchString(rank) }

var laneNumber = regexp.MustCompile(`, \d+ at once$`)

// samplesOf counts the samples of each track.
func samplesOf(t *trace.Trace) []int {
	n := make([]int, len(t.Tracks))
	for i := range t.Samples {
		n[t.Samples[i].Track]++
	}
	return n
}

// isPinnable reports whether a track is a counter of a process or of what logs say, or a row of those
// that are side by side.
func isPinnable(tracks []trace.Track, id trace.TrackID, names []string) bool {
	top := id
	for tracks[top].Parent != 0 {
		top = tracks[top].Parent
	}
	return names[tracks[top].Name] == profile.SideBySide || names[tracks[top].Name] == profile.Logged || tracks[id].Kind == trace.KindCounter && tracks[tracks[id].Parent].Kind == trace.KindProcess
}

// rankOf returns the rank of a row; a counter is of that of its process, if it has one.
func rankOf(tracks []trace.Track, id trace.TrackID) trace.Rank {
	if tracks[id].Kind == trace.KindCounter {
		id = tracks[id].Parent
	}
	return tracks[id].Rank
}

// pathOf returns the path of a track, as a viewer has it.
func pathOf(tracks []trace.Track, id trace.TrackID, names []string) string {
	path := names[tracks[id].Name]
	for id = tracks[id].Parent; id != 0; id = tracks[id].Parent {
		path = names[tracks[id].Name] + trace.PathSeparator + path
	}
	return path
}

// timeToShow returns the time to look at first; 0 is all of it. It lies within the trace:
// a viewer ignores any other.
func timeToShow(t *trace.Trace, findings []Finding, profiles inputs.Extent) (from, to trace.Time) {
	first, last, ok := t.Bounds()
	if !ok {
		return 0, 0
	}
	var margin trace.Time
	if i := slices.IndexFunc(findings, func(f Finding) bool { return f.Since != 0 }); i >= 0 {
		from, to = findings[i].Since, cmp.Or(findings[i].Until, last)
		margin = (last - first) / 50
	} else if length := profiles.To - profiles.From; length > 0 && length < (last-first)/2 {
		from, to, margin = profiles.From, profiles.To, length/20
	} else {
		return 0, 0
	}
	return max(first, from-margin), min(last, to+margin)
}
