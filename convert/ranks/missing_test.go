package ranks

import (
	"reflect"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Among the processes of a machine, a gap between TP ranks means that one is missing. Gaps in other
// numbers do not, and processes without a device are not ranks.
func TestMissingRanksOfExports(t *testing.T) {
	machine := []*Capture{{File: &inputs.ProcessProfile{Source: &inputs.Source{Format: &format.Format{Machine: true}}}}}
	tp := func(n int16) *Track {
		return &Track{Rank: trace.Rank{TP: n, PP: -1, DP: -1, EP: -1, Global: -1}, Devices: 1, Captures: machine}
	}
	of := func(global int32, devices int) *Track {
		return &Track{Rank: trace.Rank{TP: -1, PP: -1, DP: -1, EP: -1, Global: global}, Devices: devices, Captures: machine}
	}
	gap := []profile.MissingRanks{{Seen: 3, Size: 4, AtLeast: true, Missing: []string{"TP2"}}}
	for what, c := range map[string]struct {
		tracks []*Track
		want   []profile.MissingRanks
	}{
		"a gap":                     {[]*Track{tp(0), tp(1), tp(3)}, gap},
		"beside other processes":    {[]*Track{tp(0), tp(1), tp(3), of(-1, 0)}, gap},
		"one may be the rank":       {[]*Track{tp(0), tp(1), tp(3), of(-1, 1)}, nil},
		"none is missing":           {[]*Track{tp(0), tp(1), tp(2)}, nil},
		"one alone":                 {[]*Track{tp(3)}, nil},
		"numbers of a communicator": {[]*Track{of(0, 1), of(1, 1), of(3, 1)}, nil},
	} {
		w := &world{numbers: map[int32]bool{}, byTP: true}
		for _, r := range c.tracks {
			w.add(r)
		}
		if got := missingOf([]*world{w}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}
