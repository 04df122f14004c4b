package overview

import (
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// Two faults, one after the other, are two findings, each with its size and place, and their total cost
// matches a run without them.
func TestTwoCausesInTurn(t *testing.T) {
	const second = time.Second
	slow := func(server int, at, lasts time.Duration, size float64) cluster.Fault {
		return cluster.Fault{Name: "slow decode", Server: server, At: at, For: lasts, Size: size}
	}
	for _, c := range []struct {
		name   string
		length time.Duration
		faults []cluster.Fault
		say    [2]string // for one finding each
	}{
		{"one server, twice", 400 * second, []cluster.Fault{slow(1, 60*second, 50*second, 1.8), slow(1, 250*second, 50*second, 1.8)},
			[2]string{`unified .* rose by (79|80|81) % .* at 07:07:(39|40).*, until 07:08:(29|30)`, `unified .* rose by (79|80|81) % .* at 07:10:(49|50).*, until 07:11:(39|40)`}},
		{"one server, and once more", 300 * second, []cluster.Fault{slow(1, 80*second, 0, 1.3), slow(1, 190*second, 0, 1.4)},
			[2]string{`unified .* rose by (29|30|31) % .* at 07:0(7:59|8:00)`, `unified .* rose by (39|40|41) % .* at 07:09:(49|50)`}},
		{"two servers, by another part each", 300 * second, []cluster.Fault{slow(0, 80*second, 0, 1.4), slow(2, 190*second, 0, 1.6)},
			[2]string{`unified .* rose by (39|40|41) % .* at 07:0(7:59|8:00)`, `unified .* rose by (59|60|61) % .* at 07:09:(49|50)`}},
		{"all servers, and one of them once more", 300 * second, []cluster.Fault{slow(cluster.All, 80*second, 0, 1.2), slow(2, 190*second, 0, 1.5)},
			[2]string{`all 3 unified servers rose by (19|20|21) % .* at 07:0(7:59|8:00)`, `unified .* rose by (49|50|51) % .* at 07:09:(49|50)`}},
		{"all servers, before more requests come", 300 * second, []cluster.Fault{slow(cluster.All, 80*second, 0, 1.3), {Name: "burst", Server: cluster.All, At: 180 * second, Every: time.Hour, Size: 6}},
			[2]string{`all 3 unified servers rose by (29|30|31) % .* at 07:0(7:59|8:00)`, `arrivals rose .* at 07:09:(3\d|4\d)`}},
		{"longer answers, and then a slow server", 300 * second, []cluster.Fault{{Name: "long outputs", Server: cluster.All, At: 80 * second, Size: 2.5}, slow(0, 190*second, 0, 1.4)},
			[2]string{`length of answers rose .* at 07:0(7:5\d|8:0\d)`, `unified .* rose by (39|40|41) % .* at 07:09:(49|50)`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := cluster.DefaultConfig(3)
			config.Length, config.Level, config.Faults = c.length, 1, c.faults
			set, truth := testset.ClusteredAs(t, &cluster.Scenario{Name: c.name}, config)
			o := New(Input{Requests: set})
			var at [2]int
			for k, say := range c.say {
				at[k] = -1
				for i := range o.Findings {
					if regexp.MustCompile(say).MatchString(o.Findings[i].Text) {
						at[k] = i
					}
				}
			}
			if at[0] < 0 || at[1] < 0 || at[0] == at[1] {
				t.Errorf("findings %v of %q", at, textsOf(o.Findings))
			}
			if share, extra := float64(truth.ExtraNs)/float64(truth.TotalNs), o.Sum.Extra(); c.faults[1].Name != "burst" && math.Abs(extra-share) > share/5 {
				t.Errorf("they cost %.3f of the time, by truth %.3f", extra, share)
			}
		})
	}
}
