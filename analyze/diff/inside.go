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
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Within is a change within a capture, beyond doubt. What came before and what came after are two things, so that the capture as a whole is a
// mixture, whose pieces scatter too much for a comparison to tell anything.
type Within struct {
	Text              string
	First, Time, Last trace.Time // bounds of 95 %
	P                 finding.Probability
	Confidence        finding.Confidence
	What              Changing
	Cause             bool // load, or pace: what takes longer under a load that comes and goes is none
	Stays             bool // it matters, however long requests take over all of the capture
}

// Changing tells whether the same changed within two captures.
type Changing struct {
	Place  string
	Metric change.Metric
	Stage  string
	Back   bool
}

// changesWithin returns what changed within a capture, in order of time. Where it is known what steps of servers take, a queue
// that fills up and empties by itself is no change: it is what the capture is like all the time.
func changesWithin(s *request.Set, paced bool) (list []Within) {
	peers := place.Of(s)
	changes := change.Find(peers)
	for i := range changes.List {
		x := &changes.List[i]
		if finding.Chance(x.P).Confidence(finding.Likely) == finding.Certain && !(paced && x.IsQueue()) {
			first := &x.Shifts[0]
			list = append(list, Within{x.Sentence(), x.First, x.Time, x.Last, finding.Chance(x.P), finding.Certain,
				Changing{first.Name, first.Metric, first.Stage, first.Back}, x.IsCause(), stays(first)})
		}
	}
	for _, f := range outside(s, peers) {
		list = append(list, Within{f.Text, f.Since - f.Within, f.Since, f.Since + f.Within, f.P, f.P.Confidence(finding.Likely),
			Changing{Place: f.At.String(), Stage: string(f.Kind) + " " + f.Subkind}, true, true})
	}
	slices.SortStableFunc(list, func(a, b Within) int { return cmp.Compare(a.Time, b.Time) })
	return list
}

// changesOfDevices returns since when GPUs take longer, or are busy less, with as much to do, in order of time.
func changesOfDevices(t *overtime.Timeline) (list []Within) {
	found, _ := t.Findings()
	for i := range found {
		f := &found[i]
		list = append(list, Within{f.Text, f.Since - f.Within, f.Since, f.Since + f.Within, f.P, cmp.Or(f.Confidence, f.P.Confidence(finding.Likely)),
			Changing{Place: f.At.String(), Stage: f.Subkind}, true, true})
	}
	slices.SortStableFunc(list, func(a, b Within) int { return cmp.Compare(a.Time, b.Time) })
	return list
}

// outside finds what began within a capture, and no series shows whole: servers that hang or died, gateways and tokenizers that
// keep requests, answers that come late, and slow links between two servers.
func outside(s *request.Set, peers *place.Groups) (list []finding.Finding) {
	found, _ := lifecycle.Find(s).Findings()
	add := func(found []finding.Finding, kind finding.Kind, is func(*finding.Finding) bool) {
		for _, f := range found {
			if f.Kind = kind; f.Since != 0 && is(&f) {
				list = append(list, f)
			}
		}
	}
	add(found, finding.Lifecycle, func(f *finding.Finding) bool { return f.Subkind == lifecycle.Hang || f.Subkind == lifecycle.Death })
	a := tail.New(peers, tail.Options{OnlyTransfers: true})
	costs := cause.NewCosts(s, a.List, a.Usual)
	found, _ = serverlimit.FindFront(s).Findings(costs)
	add(found, finding.Front, func(*finding.Finding) bool { return true })
	found, _ = a.TransferFindings(costs)
	add(found, finding.Transfer, func(f *finding.Finding) bool { return f.Subkind == finding.SlowLink })
	return list
}

// stays reports whether a pace is another one to the end, by enough to matter: no spell, and no warm-up.
func stays(f *change.Shift) bool {
	if f.Metric != change.PaceChanged || f.Until != 0 || f.Shape == changepoint.Settling {
		return false
	}
	c := compare.Change{Change: significance.Change{Ratio: float64(f.After.P50) / float64(f.Before.P50)}}
	return c.Size() >= math.Log1p(compare.MinChange)
}

// Words tells of a change within one of two captures, as the command calls it.
func (x *Within) Words(capture string) string { return "during " + capture + ", " + x.Text }

// Finding tells of it as a finding.
func (x *Within) Finding(capture string) finding.Finding {
	return finding.Finding{Kind: finding.Change, Subkind: "during " + capture, Severity: finding.Info, Confidence: x.Confidence, Text: x.Words(capture),
		Since: x.Time, Within: max(x.Time-x.First, x.Last-x.Time), P: x.P, CostBasis: finding.RequestTime}
}
