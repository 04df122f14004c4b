package hardware

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// If heat slows down all GPUs of a host, a comparison with peers shows nothing, but each GPU
// reports it: that is one finding. A power limit that all GPUs reach is none.
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

// GPUs of a host that heat slows down together, while the others go on, are one finding.
func TestHalfOfAHostBrakes(t *testing.T) {
	var slow []plan
	for gpu := 5; gpu < 8; gpu++ {
		slow = append(slow, plan{host: 0, gpu: gpu, from: begin + 600*sec, to: begin + 1800*sec, clock: 1245, bits: 0x40})
	}
	found, _ := Clocks(scraped(1, slow, true, true), nil)
	if len(found) != 1 || !strings.Contains(found[0].Text, "; the same goes for 2 others of its host") {
		t.Fatal(found)
	}
	one, _ := Clocks(scraped(1, slow[:1], true, true), nil)
	if found[0].Cost < 2.5*one[0].Cost {
		t.Errorf("3 cost %.3f, one %.3f", found[0].Cost, one[0].Cost)
	}
}

// If the power limit drops below what GPUs drew before, that is a finding. GPUs at the limit that they always had are just under load, and
// a limit that leaves the clock as it was makes nothing slower.
func TestLowerLimitOfPower(t *testing.T) {
	for is, lower := range map[[2]float64]bool{{350, 1250}: true, {690, 1250}: false, {350, 1980}: false} {
		watts, limited := is[0], is[1]
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("metrics.json", "Prometheus range")
		server := f.Server(series.Server{Host: "node1"})
		for gpu := range 4 {
			p := f.Place(series.Place{Server: server, Rank: trace.NoRank, GPU: int32(gpu)})
			clock, util, why, power := f.Series(series.SMClock, p), f.Series(series.GPUUtil, p), f.Series(series.Throttling, p), f.Series(series.Power, p)
			for n := range 20 {
				at, mhz, bits, draws := begin+5*sec*trace.Time(n), 1980.0, 0.0, 610.0
				if n >= 10 {
					mhz, bits, draws = limited, 4, watts
				}
				f.Add(clock, at, mhz)
				f.Add(util, at, 97)
				f.Add(why, at, bits)
				f.Add(power, at, draws)
			}
		}
		set.Finish(series.Known{})
		found, _ := Clocks(set, nil)
		if (len(found) == 1) != lower {
			t.Fatalf("%v W: %+v", watts, found)
		}
		const text = "4 GPUs of node1 were slowed down from 20:54:10 to 20:54:55: limit of power; their SM clock was 1,250 MHz, 1,980 at work without that"
		const why = "their power is 350 W then, and was 610 W at work without that: the limit is lower than it was"
		if lower && (found[0].Text != text || finding.Sentences(found[0].Evidence)[1] != why) {
			t.Errorf("%+v", found[0])
		}
	}
}

// A clock that falls at equal utilization and lower power was slowed down, even without throttle reasons, and on hosts with one GPU
// as well as with several. Higher load, which draws more power, and lower utilization, which lets the clock fall, are not findings.
func TestClockFalls(t *testing.T) {
	for _, c := range []struct {
		name             string
		gpus             int
		mhz, util, power float64 // from 20:54:10 on
		told             string
	}{
		{"one GPU", 1, 1250, 97, 350, "GPU 0 of node1 was slowed down from 20:54:10 to 20:54:55; its SM clock was 1,250 MHz, 1,980 at work without that"},
		{"all GPUs", 4, 1250, 95, 350, "4 GPUs of node1 were slowed down from 20:54:10 to 20:54:55; their SM clock was 1,250 MHz, 1,980 at work without that"},
		{"limit of power", 1, 1600, 97, 690, ""},
		{"less to do", 1, 1250, 60, 350, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("metrics.json", "Prometheus range")
		server := f.Server(series.Server{Host: "node1"})
		for gpu := range c.gpus {
			p := f.Place(series.Place{Server: server, Rank: trace.NoRank, GPU: int32(gpu)})
			clock, util, power := f.Series(series.SMClock, p), f.Series(series.GPUUtil, p), f.Series(series.Power, p)
			for n := range 20 {
				at, mhz, busy, draws := begin+5*sec*trace.Time(n), 1980.0, 97.0, 610.0
				if n >= 10 {
					mhz, busy, draws = c.mhz, c.util, c.power
				}
				f.Add(clock, at, mhz)
				f.Add(util, at, busy)
				f.Add(power, at, draws)
			}
		}
		set.Finish(series.Known{})
		found, _ := Clocks(set, nil)
		if told := len(found) == 1 && found[0].Text == c.told && found[0].Confidence == finding.Likely; told != (c.told != "") || len(found) > 1 {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}

// One scrape shows a GPU that heat slows down while it works, and says no more than that. A GPU at its limit of power is as fast as
// it may be, and one that idles loses nothing.
func TestOneScrapeOfBrakes(t *testing.T) {
	for _, c := range []struct {
		bits, util float64
		told       string
	}{
		{0x48, 97, "GPU 0 of node1 was slowed down at 20:53:20: thermal slowdown by hardware; its SM clock was 510 MHz"},
		{0x4, 97, ""},
		{0x48, 0, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("metrics.txt", "Prometheus text")
		p := f.Place(series.Place{Server: f.Server(series.Server{Host: "node1"}), Rank: trace.NoRank, GPU: 0})
		f.Add(f.Series(series.SMClock, p), begin, 510)
		f.Add(f.Series(series.GPUUtil, p), begin, c.util)
		f.Add(f.Series(series.Throttling, p), begin, c.bits)
		set.Finish(series.Known{})
		var got string
		found, _ := Clocks(set, nil)
		for _, f := range found {
			got += f.Text
			if f.Cost != 0 || f.Until != 0 {
				t.Errorf("%+v", f)
			}
		}
		if got != c.told {
			t.Errorf("%v: %q", c, got)
		}
	}
}
