package diff

import (
	"math"

	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
)

// A Load is something about the requests of two captures that explains why they are
// slow or fast: how many there are, and how long.
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
	numLoads
)

var loadNames = [numLoads]string{
	loadRate:       "requests per second",
	loadPrompt:     "prompt tokens per request",
	loadOutput:     "output tokens per request",
	loadUnfinished: "share of requests that did not finish",
}

// measureLoads measures the requests of a capture. Those that overlap end alike; but when
// they come and how long they are does not depend on how long they take, so that these
// pieces may be short.
func measureLoads(s *request.Set, overlapping *diffPieces) []diffLoad {
	if len(s.Requests) == 0 {
		return nil
	}
	short := cutRequests(s, maxPieces)
	loads := make([]diffLoad, numLoads)
	for i, name := range loadNames {
		loads[i] = diffLoad{name, make([]significance.Piece, max(short.n(), overlapping.n()))}
	}
	add := func(load, piece int, sum, of float64) {
		loads[load].pieces[piece].Sum += sum
		loads[load].pieces[piece].Of += of
	}
	for i := range s.Requests {
		r := &s.Requests[i]
		piece := short.at(r.Start)
		if i > 0 {
			add(loadRate, piece, 1, float64(r.Start-s.Requests[i-1].Start)/1e9)
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
		add(loadUnfinished, overlapping.at(r.Start), lost, 1)
	}
	return loads
}

// compareLoads compares what both captures know.
func compareLoads(before, after *Collected) []Load {
	if before.loads == nil || after.loads == nil {
		return nil
	}
	var out []Load
	for i := range before.loads {
		l := Load{Name: before.loads[i].name}
		b, a := significance.Mean(before.loads[i].pieces), significance.Mean(after.loads[i].pieces)
		l.Before, l.After = b.Value, a.Value
		l.Change.Change = significance.Compare(b, a)
		if (b.Value == 0) != (a.Value == 0) {
			l.Change.P = appeared(before.loads[i].pieces, after.loads[i].pieces)
		}
		if b.Value > 0 || a.Value > 0 {
			out = append(out, l)
		}
	}
	return out
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
