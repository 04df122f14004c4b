package diff

import (
	"regexp"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// operatorKinds are the kinds of rows that operators become, by their kind in a ByName.
var operatorKinds = [...]Kind{Operator, OperatorGPU}

// addOperators adds how long threads were in every operator itself, call by call, and what
// devices did for it.
func (d *Collected) addOperators(set *profile.Set, window *walk.Options, pieces *diffPieces, names []string) {
	streams := make([]*walk.ByName[diffGroup], len(set.Streams))
	operators.Each(set, *window, func(i int) operators.Visitor {
		by := walk.NewByName[diffGroup](set, window)
		streams[i] = by
		return operators.Visitor{
			Call: func(rank int32, name trace.Sym, at trace.Time, self int64) {
				by.Of(rank, name, 0).add(pieces.at(at), pieces.n(), self, d.in)
			},
			Work: func(k *profile.Kernel, name trace.Sym) {
				by.Of(k.Rank, name, 1).add(pieces.at(k.Start), pieces.n(), k.Dur(), d.in)
			},
		}
	})
	for _, by := range streams {
		for i, key := range by.Keys {
			d.put(diffKey{operatorKinds[key.Kind], set.Syms.Name(key.Name), names[key.Rank]}, &by.Groups[i])
		}
	}
}

// A gapTimes is how long devices of a rank waited, by what the host did and by piece; ns.
type gapTimes map[string][]int64

// addGaps adds what the host did while devices waited for it, a value for each piece.
func (d *Collected) addGaps(set *profile.Set, window *walk.Options, pieces *diffPieces, names []string) {
	collector := gaps.Collect(set)
	gpu.Measure(set, gpu.Options{From: window.From, To: window.To, Gaps: collector.Add})
	ranks := make([]gapTimes, len(set.Ranks))
	collector.Measure(gaps.Options{From: window.From, To: window.To, Each: func(rank int32, c *gaps.Cause, gap trace.Time, ns int64) {
		if ranks[rank] == nil {
			ranks[rank] = gapTimes{}
		}
		name := gapName(c)
		if ranks[rank][name] == nil {
			ranks[rank][name] = make([]int64, pieces.n())
		}
		at := &ranks[rank][name][pieces.at(gap)]
		*at = distribution.AddTimes(*at, ns)
	}})
	groups := map[diffKey]*diffGroup{}
	for rank, times := range ranks {
		for name, byPiece := range times {
			for piece, ns := range byPiece {
				if ns > 0 {
					addTo(groups, diffKey{HostCause, name, names[rank]}).add(piece, pieces.n(), ns, d.in)
				}
			}
		}
	}
	d.putAll(groups)
}

// line matches where in a file a function is, which the next version moves.
var line = regexp.MustCompile(`:\d+\)`)

// gapName names a cause, alike in captures of different versions: "after a sync call: Python
// in sample() (scheduler.py)".
func gapName(c *gaps.Cause) string {
	name := gpu.ReasonWords[c.Reason] + ": " + c.Did.String()
	if where := line.ReplaceAllString(c.Where(), ")"); where != "" {
		name += ", " + where
	}
	return name
}
