package hardware

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// Heat that slows down all GPUs of a host shows in no comparison with peers, but each of them says so: that is one finding.
// A limit of power that all reach is none.
func TestAllGPUsOfAHostBrake(t *testing.T) {
	all := func(bits float64) (slow []plan) {
		for gpu := range 8 {
			slow = append(slow, plan{host: 0, gpu: gpu, from: begin + 600*sec, to: begin + 1200*sec, clock: 1245, bits: bits})
		}
		return slow
	}
	for _, seed := range testset.FirstSeeds(t, 4) {
		found, _ := Clocks(scraped(seed, all(0x40|0x8), true, true), nil)
		if len(found) != 1 {
			t.Fatalf("seed %d: %d findings: %v", seed, len(found), found)
		}
		f := &found[0]
		if d := f.Since - (begin + 600*sec); d < 0 || d > 15*sec || f.Until < begin+1050*sec || f.Until > begin+1200*sec {
			t.Errorf("seed %d: from %v to %v after the begin", seed, f.Since-begin, f.Until-begin)
		}
		for _, want := range []string{"8 GPUs of node1 were slowed down from ", ": thermal slowdown by hardware; their SM clock was 1,2", " MHz, 1,9"} {
			if !strings.Contains(f.Text, want) {
				t.Errorf("seed %d: %q does not say %q", seed, f.Text, want)
			}
		}
		// A third of the time, half of the GPUs, a third of the clock.
		if f.Cost < 0.03 || f.Cost > 0.08 {
			t.Errorf("seed %d: it costs %.3f", seed, f.Cost)
		}
		if found, _ := Clocks(scraped(seed, all(0x4), true, true), nil); len(found) > 0 {
			t.Errorf("seed %d: a limit of power: %v", seed, found)
		}
		if found, _ := Clocks(scraped(seed, nil, true, true), nil); len(found) > 0 {
			t.Errorf("seed %d: nothing is wrong: %v", seed, found)
		}
	}
}
