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

// maxPinned is the maximum number of pinned rows: more would fill the screen.
const maxPinned = 12

// maxSamples is the maximum number of samples of a pinned counter. A viewer without a GPU needs 50 ms per
// frame for 50,000 samples, and the load group has the same data in buckets.
const maxSamples = 20_000

// pinned are the prefixes of the names of rows to pin, the most telling first. GPU clocks are pinned only
// for findings.
var pinned = []string{roleTracks[stepRole], roleTracks[computeRole], roleTracks[communicationRole], roleTracks[copyRole], "queued", "running", clockRow}

// clockRow is the name of rows of GPU clocks.
var clockRow = series.Metrics[series.SMClock].Name

// tellsOf maps a kind of work to the row that shows a finding about it. Copies are pinned only for such
// findings.
var tellsOf = map[kernelname.Class]string{kernelname.ClassCommunication: roleTracks[communicationRole], kernelname.ClassMemory: roleTracks[copyRole]}

// noteOpening tells viewers what to show first when they open the trace: the rows of the ranks that
// findings are about, then those of one representative of the other ranks, starting at the first finding
// with a time; without one, at the time of the profiles if that is short.
func noteOpening(t *trace.Trace, findings []Finding, profiles inputs.Extent) *trace.Trace {
	o := trace.Opening{Pin: rowsToPin(t, findings)}
	o.From, o.To = timeToShow(t, findings, profiles)
	t.Attributes = append(t.Attributes, o.Attributes()...)
	return t
}

// A candidate is a row that may be pinned.
type candidate struct {
	track   trace.TrackID
	finding int // the first finding about its rank, or the number of findings if there is none
	what    int // index into pinned; -1 if it shows the finding
}

// rowsToPin returns the paths of the rows to pin. Pinned rows of the same name cannot be told apart: only
// the first one is pinned.
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

// doesAsOthers reports whether a lower rank does the same work: for all but the first rank of a TP group,
// or all but rank 0 if only global numbers are known.
func doesAsOthers(r trace.Rank) bool { return r.TP > 0 || r.TP < 0 && r.Global > 0 }

// isLane reports whether a row shows work that ran concurrently with the rank's main row.
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

// isPinnable reports whether a track is a counter of a process or of logs and metrics, or a row in "Side by
// side".
func isPinnable(tracks []trace.Track, id trace.TrackID, names []string) bool {
	top := id
	for tracks[top].Parent != 0 {
		top = tracks[top].Parent
	}
	return names[tracks[top].Name] == profile.SideBySide || names[tracks[top].Name] == profile.Logged || tracks[id].Kind == trace.KindCounter && tracks[tracks[id].Parent].Kind == trace.KindProcess
}

// rankOf returns the rank of a row; for a counter, that of its process.
func rankOf(tracks []trace.Track, id trace.TrackID) trace.Rank {
	if tracks[id].Kind == trace.KindCounter {
		id = tracks[id].Parent
	}
	return tracks[id].Rank
}

// pathOf returns the path of a track in the viewer.
func pathOf(tracks []trace.Track, id trace.TrackID, names []string) string {
	path := names[tracks[id].Name]
	for id = tracks[id].Parent; id != 0; id = tracks[id].Parent {
		path = names[tracks[id].Name] + trace.PathSeparator + path
	}
	return path
}

// timeToShow returns the time to show first; 0, 0 is all of it. It lies within the trace: a viewer ignores
// any other.
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
