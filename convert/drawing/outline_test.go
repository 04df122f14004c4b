package drawing

import (
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A group of very many spans has one slice over everything drawn, on timelines for people: those
// with findings, even an empty list.
func TestOutline(t *testing.T) {
	eachDump(t, func(t *testing.T, load func() *request.Set) {
		for _, test := range []struct {
			findings []Finding
			spans    int
			want     int
		}{
			{[]Finding{}, fewSpans + 1, 1},
			{[]Finding{}, fewSpans, 0},
			{nil, fewSpans + 1, 0},
		} {
			set := load()
			b := trace.NewBuilder(set.Syms, set.Args, set.Diags)
			l := newLayout(set, b, Options{Findings: test.findings})
			of := l.during
			l.outline(b, b.Track(trace.Track{}), test.spans)
			drawn := b.Finish().Slices[1:]
			if len(drawn) != test.want {
				t.Fatalf("%d spans, findings %v: %d slices, want %d", test.spans, test.findings, len(drawn), test.want)
			}
			if test.want > 0 && (drawn[0].Time != of.From || drawn[0].Time+trace.Time(drawn[0].Dur) != of.To) {
				t.Errorf("from %d for %d, want all of %v", drawn[0].Time, drawn[0].Dur, of)
			}
		}
	})
}
