package request

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// The rate is that of the busiest ten seconds, even in a shorter dump. Nearby lost rows count as
// one gap.
func TestTracing(t *testing.T) {
	s := planted(t, plant{requests: 4000, apart: 10_000}) // 40 s, with 9 rows of decode TP0 per request
	perRequest := 0
	for i := range s.Rows {
		if row := &s.Rows[i]; row.Proc == decodeProc && row.Start < s.Rows[0].Start+10_000_000 {
			perRequest++
		}
	}
	rate := float64(100 * perRequest)
	if got := s.Tracing()[decodeProc]; got.PerSecond < 0.98*rate || got.PerSecond > 1.02*rate || len(got.Gaps) > 0 {
		t.Errorf("%+v, want %.0f rows/s", got, rate)
	} else if share := got.Share(); share < rate*38e-6 || share > rate*42e-6 {
		t.Errorf("%v of the time", share)
	}

	short := planted(t, plant{requests: 100, apart: 10_000}).Tracing()[decodeProc] // 1 s
	if short.PerSecond < 0.9*rate || short.PerSecond > 1.1*rate {
		t.Errorf("%+v of a second, want %.0f rows/s", short, rate)
	}

	at := func(ms int) trace.Time { return trace.Time(ms * 1_000_000) }
	s.Missing = []Missing{{at(9000), decodeProc}, {at(1000), decodeProc}, {at(1900), decodeProc}, {at(1950), prefillProc}, {at(2800), decodeProc}, {at(3900), None}}
	want := []Gap{{Interval{at(1000), at(2800)}, 3}, {Interval{at(9000), at(9000)}, 1}}
	tracing := s.Tracing()
	if got := tracing[decodeProc].Gaps; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := tracing[prefillProc].Gaps; len(got) != 1 || got[0].Lost != 1 {
		t.Errorf("%+v", got)
	}
}
