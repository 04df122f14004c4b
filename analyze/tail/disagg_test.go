package tail

import (
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// A decode side is full if one of its ranks is always busy, or if more requests wait for it together than by chance.
func TestFullDecode(t *testing.T) {
	for name, c := range map[string]struct {
		ranks []SideRank
		want  bool
	}{
		"a few at random":  {[]SideRank{{Role: request.Decode, Busy: 0.3, Waiting: 0.1, together: 1.1}}, false},
		"they queue":       {[]SideRank{{Role: request.Decode, Busy: 0.3, Waiting: 0.1, together: 1.1}, {Role: request.Decode, Busy: 0.4, Waiting: 1, together: 13}}, true},
		"always full":      {[]SideRank{{Role: request.Decode, Busy: 0.9, Waiting: 20, together: 20}}, true},
		"of the other one": {[]SideRank{{Role: request.Prefill, Busy: 0.9, Waiting: 1, together: 13}}, false},
	} {
		d := Disaggregation{Ranks: c.ranks}
		if got := d.full(request.Decode); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
