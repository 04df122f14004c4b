package series

import (
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// Timestamps without a date get the only day on which the input overlaps with others; otherwise they stay unchanged.
func TestDates(t *testing.T) {
	const hour, day = trace.Time(time.Hour), trace.Time(24 * time.Hour)
	noon := trace.Time(1_700_000_000e9)/day*day + 12*hour
	for _, c := range []struct {
		name     string
		from, to trace.Time // range of another input; 0 means none
		want     trace.Time // in days
		code     string
	}{
		{"alone", 0, 0, 0, "log-no-date"},
		{"that day", noon, noon + 3*hour, 0, "log-date"},
		{"three days before", noon - 3*day, noon - 3*day + hour, -3, "log-date"},
		{"weeks later", noon + 20*day - hour, noon + 20*day + hour, 20, "log-date"},
		{"at no such time", noon + 8*hour, noon + 9*hour, 0, "log-no-date"},
		{"on several days", noon - 3*day, noon, 0, "log-no-date"},
	} {
		diags := &trace.Diags{}
		set := New(trace.NewSymbols(), diags)
		if c.from != 0 {
			f := set.Fill("a.log", "server log")
			f.Saw(c.from)
			f.Saw(c.to)
		}
		f := set.Fill("dmon", "nvidia-smi")
		f.Source().Undated = true
		f.Saw(noon)
		f.Saw(noon + 2*hour)
		set.Finish(Known{})
		src := &set.Sources[len(set.Sources)-1]
		list := diags.All()
		if got := src.First - noon; got != c.want*day || len(list) != 1 || list[0].Code != c.code {
			t.Errorf("%s: %d days, %v", c.name, got/day, list)
		}
	}
}
