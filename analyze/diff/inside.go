package diff

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/transfer"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Within is a change within a capture that is beyond doubt. The capture as a whole is then a
// mixture of before and after, whose pieces scatter too much for a comparison to find anything.
type Within struct {
	Text              string
	First, Time, Last trace.Time // Time, with 95 % confidence bounds
	P                 finding.Probability
	Confidence        finding.Confidence
	Until             trace.Time // when it was over; 0: never
	What              Changing
	Cause             bool // it is load or pace; latencies under a load that comes and goes are not causes
	Stays             bool // it matters even if requests take equally long over the whole capture
	Always            bool // not a change: it is there, or comes back, all the time
}

// Changing identifies what changed, to see whether it also did in the other capture.
type Changing struct {
	Place  string
	Metric change.Metric
	Stage  string
	Back   bool
}

// changesWithin returns what changed within a capture, in order of time. If the pace of servers is known (paced), a queue that
// fills and drains on its own is not a change: the capture is like that all the time.
func changesWithin(s *request.Set, paced bool) (list []Within) {
	peers := place.Of(s)
	changes := change.Find(peers)
	for i := range changes.List {
		x := &changes.List[i]
		first := &x.Shifts[0]
		if finding.Chance(x.P).Confidence(finding.Likely) == finding.Certain && !(paced && x.IsQueue()) && !(first.Metric == change.PaceChanged && !large(first, 1)) {
			list = append(list, Within{Text: x.Sentence(), First: x.First, Time: x.Time, Last: x.Last, P: finding.Chance(x.P), Confidence: finding.Certain,
				Until: first.Until, What: Changing{first.Name, first.Metric, first.Stage, first.Back}, Cause: x.IsCause(), Stays: stays(first, changes)})
		}
	}
	for _, y := range outside(s, peers, changes) {
		if y.What.Stage == string(finding.Load)+" "+serverlimit.Crowd { // it is why arrivals and lengths seem to change
			list = slices.DeleteFunc(list, func(x Within) bool {
				return slices.Contains([]change.Metric{change.ArrivalsChanged, change.PromptChanged, change.OutputChanged}, x.What.Metric) && x.First <= y.Until && y.First <= max(x.Last, x.Until)
			})
		}
		list = append(list, y)
	}
	slices.SortStableFunc(list, func(a, b Within) int { return cmp.Compare(a.Time, b.Time) })
	return list
}

// changesOfDevices returns when GPUs became slower, or less busy, with the same amount of work, in order of time.
func changesOfDevices(t *overtime.Timeline) (list []Within) {
	found, _ := t.Findings()
	for i := range found {
		f := &found[i]
		x := withinOf(f)
		x.What.Stage = f.Subkind
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b Within) int { return cmp.Compare(a.Time, b.Time) })
	return list
}

// outside finds what began within a capture and is not a change of a series: servers that hung, died, or stand still; gateways and
// tokenizers that hold requests; answers that come late; crowds of requests; requests that fail, and clients that give up; slow links
// between two servers; and limits that requests wait for.
func outside(s *request.Set, peers *place.Groups, changes *change.Changes) (list []Within) {
	add := func(found []finding.Finding, kind finding.Kind, is func(*finding.Finding) bool) {
		for _, f := range found {
			if f.Kind = kind; f.Since != 0 && is(&f) {
				list = append(list, withinOf(&f))
			}
		}
	}
	found, _ := lifecycle.Find(s).Findings()
	add(found, finding.Lifecycle, func(f *finding.Finding) bool { return f.Subkind == lifecycle.Hang || f.Subkind == lifecycle.Death })
	times := cause.NewAttributor(peers).All()
	cause.SplitSizes(s, times, peers.Len())
	costs := cause.NewCosts(s, times, cause.UsualOf(times))
	whatever := func(*finding.Finding) bool { return true }
	found, _ = serverlimit.FindFront(s).Findings(costs)
	add(found, finding.Front, whatever)
	add(serverlimit.FindCrowds(s).Findings(costs), finding.Load, whatever)
	failures, _ := requests.FailureFindings(s)
	givenUp, _ := requests.GiveUpFindings(s)
	add(append(failures, givenUp...), finding.Errors, func(f *finding.Finding) bool { f.Confidence = finding.Certain; return true }) // they are counted
	add(transfer.Find(s, times).Findings(costs), finding.Transfer, func(f *finding.Finding) bool { return f.Subkind == finding.SlowLink })
	add(changes.Findings(costs), finding.Change, func(f *finding.Finding) bool { return f.Subkind == finding.Stalls && f.Cost >= compare.MinChange })
	limits := serverlimit.Find(peers.Ranks)
	found, _ = limits.Findings(costs)
	for i := range found {
		f := &found[i]
		if !limits.Holds(f) {
			continue
		}
		x := withinOf(f)
		x.Always, x.Stays, x.What.Place = true, f.Cost >= limitPart, f.At.Role.String() // in the other capture, another server may be the one that has less
		list = append(list, x)
	}
	return list
}

// limitPart is the part of request time above which waits for a limit always matter.
const limitPart = 0.05

// withinOf turns a finding into a change within a capture.
func withinOf(f *finding.Finding) Within {
	return Within{Text: f.Text, First: f.Since - f.Within, Time: f.Since, Last: f.Since + f.Within, P: f.P, Confidence: cmp.Or(f.Confidence, f.P.Confidence(finding.Likely)), Until: f.Until,
		What: Changing{Place: f.At.String(), Stage: string(f.Kind) + " " + f.Subkind}, Cause: true, Stays: true}
}

// stays reports whether a pace changed for good, or for so long that it matters for the capture as a whole, or more requests have no answer. A
// warm-up does not.
func stays(f *change.Shift, in *change.Changes) bool {
	if f.Metric == change.AbortsChanged || f.Metric == change.RefusedChanged {
		return f.After.Share > f.Before.Share
	}
	if f.Metric != change.PaceChanged || f.Shape == changepoint.Settling {
		return false
	}
	part := 1.0
	if f.Until != 0 {
		part = float64(f.Until-f.Time) / float64(max(1, in.To-in.From))
	}
	return large(f, part)
}

// large reports whether a pace that is different for part of a capture differs by enough to matter for the capture as a whole.
func large(f *change.Shift, part float64) bool {
	c := compare.Change{Change: significance.Change{Ratio: 1 + part*(float64(f.After.P50)/float64(f.Before.P50)-1)}}
	return c.Size() >= math.Log1p(compare.MinChange)
}

// Words returns the change as a sentence; capture is the command's word for the side.
func (x *Within) Words(capture string) string { return "during " + capture + ", " + x.Text }

// Finding returns the change as a finding.
func (x *Within) Finding(capture string) finding.Finding {
	return finding.Finding{Kind: finding.Change, Subkind: "during " + capture, Severity: finding.Info, Confidence: x.Confidence, Text: x.Words(capture),
		Since: x.Time, Within: max(x.Time-x.First, x.Last-x.Time), P: x.P, CostBasis: finding.RequestTime}
}
