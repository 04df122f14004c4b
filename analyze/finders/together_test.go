package finders

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/trace"
)

// Hosts that are in no call at the same time stop together. A host in a call that waits for its device does not
// stop with them, nor one that reaches a barrier before the late one stops.
func TestHostsThatStopTogether(t *testing.T) {
	const ms = 1_000_000
	calls := func(from, to trace.Time, waits bool) (list []straggler.Moment) {
		for at := trace.Time(0); at < 200*ms; at += ms {
			if at < from || at >= to {
				list = append(list, straggler.Moment{From: at, To: at + ms/2})
			}
		}
		if waits {
			list = append(list, straggler.Moment{From: from, To: to})
		}
		return list
	}
	for name, c := range map[string]struct {
		others [3][]straggler.Moment
		hosts  int
	}{
		"all":              {[3][]straggler.Moment{calls(50*ms, 130*ms, false), calls(52*ms, 129*ms, false), calls(49*ms, 131*ms, false)}, 4},
		"most":             {[3][]straggler.Moment{calls(50*ms, 130*ms, false), calls(52*ms, 129*ms, false), calls(50*ms, 130*ms, true)}, 3},
		"one":              {[3][]straggler.Moment{calls(0, 0, false), calls(0, 0, false), calls(0, 0, false)}, 0},
		"they wait for it": {[3][]straggler.Moment{calls(50*ms, 130*ms, true), calls(50*ms, 130*ms, true), calls(50*ms, 130*ms, true)}, 0},
		"at a barrier":     {[3][]straggler.Moment{calls(20*ms, 132*ms, false), calls(30*ms, 132*ms, false), calls(25*ms, 132*ms, false)}, 0},
	} {
		of := map[int32]*silence{7: {calls: calls(50*ms, 130*ms, false)}}
		for i, list := range c.others {
			of[int32(i)] = &silence{calls: list}
		}
		stop, ok := together(of, 7, straggler.Moment{From: 45 * ms, To: 132 * ms})
		if ok != (c.hosts > 0) || ok && (stop.hosts != c.hosts || stop.to-stop.from < 79*ms || stop.to-stop.from > 82*ms) {
			t.Errorf("%s: %v, %+v", name, ok, stop)
		}
		l := lateRank{name: "TP7", stood: []standstill{stop}}
		if text := l.standstills(); ok && !strings.Contains(text, map[int]string{4: "the hosts of all 4 ranks", 3: "the hosts of 3 of 4 ranks"}[c.hosts]) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
