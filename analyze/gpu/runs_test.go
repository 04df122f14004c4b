package gpu

import (
	"slices"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// Recordings of one incident are one run, however often the profiler was started; those of
// other days are others.
func TestRuns(t *testing.T) {
	at := func(minutes int) trace.Time { return trace.Time(time.Duration(minutes) * time.Minute) }
	span := func(from, to int) recordedSpan { return recordedSpan{at(from), at(to)} }
	for _, c := range []struct {
		what string
		r    recordings
		want []Run
	}{
		{"none", nil, nil},
		{"ranks at one time", recordings{span(10, 20), span(11, 19)}, []Run{{at(10), at(20)}}},
		{"again and again", recordings{span(120, 121), span(10, 11), span(65, 66)}, []Run{{at(10), at(121)}}},
		{"another day", recordings{span(2000, 2001), span(10, 20), span(2001, 2002), span(15, 30)}, []Run{{at(10), at(30)}, {at(2000), at(2002)}}},
		{"an hour later", recordings{span(0, 10), span(70, 71)}, []Run{{at(0), at(10)}, {at(70), at(71)}}},
		{"as far apart as times can be", recordings{{-1 << 63, -1<<63 + 1}, {1<<63 - 2, 1<<63 - 1}}, []Run{{-1 << 63, -1<<63 + 1}, {1<<63 - 2, 1<<63 - 1}}},
	} {
		if got := c.r.runs(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
