package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/slo"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// A Load is something about two captures that explains why they are slow or fast, or says it of
// the whole: how many requests there are, and how long; how many tokens steps compute.
type Load struct {
	Name          string
	Before, After float64 // NaN is unknown
	Change        Change
}

// A diffLoad is one of them in one capture.
type diffLoad struct {
	name   string
	pieces []significance.Piece
}

const (
	loadRate = iota
	loadPrompt
	loadOutput
	loadUnfinished
	loadGood
	loadGoodRate
	numLoads
)

// Names of loads.
const (
	RequestRate  = "requests per second"
	PromptTokens = "prompt tokens per request"
	OutputTokens = "output tokens per request"
	Unfinished   = "share of requests that did not finish"
	GoodShare    = "goodput: share of requests that meet the SLO"
	GoodRate     = "goodput: requests per second that meet the SLO"
)

var loadNames = [numLoads]string{
	loadRate:       RequestRate,
	loadPrompt:     PromptTokens,
	loadOutput:     OutputTokens,
	loadUnfinished: Unfinished,
	loadGood:       GoodShare,
	loadGoodRate:   GoodRate,
}

// measureLoads adds the requests of a capture. Those that overlap end alike; but when
// they come and how long they are does not depend on how long they take, so that these
// pieces may be short.
func (d *Collected) measureLoads(list []request.Request, overlapping *diffPieces, objectives []slo.Objective) {
	if len(list) == 0 {
		return
	}
	short := d.pieces(cutRequests(list, maxPieces))
	if d.loads == nil {
		d.loads = make([]diffLoad, numLoads)
		for i, name := range loadNames {
			d.loads[i] = diffLoad{name, make([]significance.Piece, max(short.n(), overlapping.n()))}
		}
	}
	add := func(load, piece int, sum, of float64) {
		d.loads[load].pieces[piece].Sum += sum
		d.loads[load].pieces[piece].Of += of
	}
	for i := range list {
		r := &list[i]
		piece := short.at(r.Start)
		if i > 0 {
			add(loadRate, piece, 1, float64(r.Start-list[i-1].Start)/1e9)
		}
		if n := r.Metrics.PromptTokens; n >= 0 {
			add(loadPrompt, piece, float64(n), 1)
		}
		if n := r.Metrics.CompletionTokens; n >= 0 {
			add(loadOutput, piece, float64(n), 1)
		}
		lost := 0.0
		if r.Status != request.Finished {
			lost = 1
		}
		during := overlapping.at(r.Start)
		add(loadUnfinished, during, lost, 1)
		if objectives == nil {
			continue
		}
		good := 0.0
		state := slo.Judge(objectives, r)
		if state == slo.Met {
			good = 1
		}
		if state != slo.Undecided {
			add(loadGood, during, good, 1)
		}
		if i > 0 {
			add(loadGoodRate, during, good, float64(r.Start-list[i-1].Start)/1e9)
		}
	}
}

// compareLoads compares what both captures know.
func compareLoads(before, after *Collected) []Load {
	if before.loads == nil || after.loads == nil {
		return nil
	}
	var out []Load
	for i := range before.loads {
		if l := compareLoad(&before.loads[i], &after.loads[i], before.captures > 0); l.Before > 0 || l.After > 0 {
			out = append(out, l)
		}
	}
	return out
}

// addTokens adds how many tokens per second a rank computes in steps of each kind whose names
// tell, of the time that its devices took for them.
func (d *Collected) addTokens(served []gpu.RankSteps, pieces *diffPieces) {
	for i := range served {
		for k := range served[i].Steps {
			s := &served[i].Steps[k]
			tokens, ok := s.Tokens()
			if !ok || !s.Projected {
				continue
			}
			speed := &d.speeds[s.Kind]
			if speed.pieces == nil {
				*speed = diffLoad{speedNames[s.Kind], make([]significance.Piece, pieces.n())}
			}
			piece := &speed.pieces[pieces.at(s.Start)]
			piece.Sum += float64(tokens)
			piece.Of += float64(distribution.Between(s.First, s.Last)) / 1e9
		}
	}
}

// speedNames are by kind of step. Of StepOther, only mixtures tell their tokens.
var speedNames = [...]string{profile.StepOther: "tokens per second in mixed steps", profile.StepPrefill: "tokens per second in prefill steps", profile.StepDecode: "tokens per second in decode steps"}

// compareSpeeds compares the steps that both captures have.
func compareSpeeds(before, after *Collected) []Load {
	var out []Load
	for kind := range speedNames {
		if b, a := &before.speeds[kind], &after.speeds[kind]; b.pieces != nil && a.pieces != nil {
			out = append(out, compareLoad(b, a, before.captures > 0))
		}
	}
	return out
}

// compareLoad compares one of them, whose pieces may be a capture each.
func compareLoad(before, after *diffLoad, captures bool) Load {
	b, a := before.sample(), after.sample()
	l := Load{Name: before.name, Before: b.Quantity.Value, After: a.Quantity.Value}
	l.Change.Change = howToCompare(before.pieces, after.pieces, captures).Compare(b, a)
	if (l.Before == 0) != (l.After == 0) {
		l.Change.P = appeared(before.pieces, after.pieces)
	}
	return l
}

func (l *diffLoad) sample() significance.Sample {
	return significance.Sample{Quantity: significance.Mean(l.pieces), Pieces: l.pieces}
}

// howToCompare chooses the test for quantities that are made of such pieces.
func howToCompare(before, after []significance.Piece, captures bool) significance.How {
	switch {
	case captures:
		return significance.ByCapture
	case min(len(before), len(after)) < significance.Few:
		return significance.ByRanks
	}
	return significance.ByScatter
}

// compareShares compares which part of the requests each rank worked on. Ranks that always
// work together have one row, one that works on all requests has none, and deployments of
// different layouts have no ranks in common.
func compareShares(before, after *Collected) []Load {
	if slices.ContainsFunc(compareSetups(before.setup, after.setup), func(s Setting) bool { return s.Name == layoutSetting }) {
		return nil
	}
	var out []Load
	seen := map[string]bool{}
	for _, name := range before.ranksOfRequests(after) {
		b, a := before.share(name), after.share(name)
		l := compareLoad(&b, &a, before.captures > 0)
		key := fmt.Sprint(b.pieces, a.pieces)
		if seen[key] || l.Before == 1 && l.After == 1 {
			continue
		}
		seen[key] = true
		out = append(out, l)
	}
	return out
}

// share is the part of all requests that a rank worked on.
func (d *Collected) share(rank string) diffLoad {
	l := diffLoad{name: "share of requests on " + rank, pieces: make([]significance.Piece, len(d.requests[""]))}
	for i, n := range d.requests[""] {
		l.pieces[i].Of = n
	}
	for i, n := range d.requests[rank] {
		l.pieces[i].Sum = n
	}
	return l
}

// ranksOfRequests returns the names of the ranks of either capture, in order.
func (d *Collected) ranksOfRequests(o *Collected) []string {
	if min(d.side.Requests, o.side.Requests) <= 0 {
		return nil
	}
	names := map[string]bool{}
	for _, of := range []diffUnits{d.requests, o.requests} {
		for name := range of {
			names[name] = name != ""
		}
	}
	var list []string
	for name, known := range names {
		if known {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// appeared tells how likely it is that only one of two captures has something, if both are
// alike; NaN if they are too short to tell.
func appeared(before, after []significance.Piece) float64 {
	count := func(pieces []significance.Piece) (seen, all int) {
		for _, p := range pieces {
			if p.Of > 0 {
				all++
				if p.Sum > 0 {
					seen++
				}
			}
		}
		return seen, all
	}
	seenBefore, b := count(before)
	seenAfter, a := count(after)
	switch {
	case min(b, a) < significance.Enough:
		return math.NaN()
	case seenBefore == 0:
		return significance.Appeared(seenAfter, a, b)
	}
	return significance.Appeared(seenBefore, b, a)
}
