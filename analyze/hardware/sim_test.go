package hardware

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	begin = trace.Time(1787000000_000000000)
	sec   = trace.Time(1_000_000_000)
)

// A plan is the planted slowdown of a simulated GPU.
type plan struct {
	host, gpu int
	from, to  trace.Time // when it is slow
	clock     float64
	bits      float64
}

// scraped returns half an hour of metrics of two hosts with eight GPUs, scraped every 15
// s, each host at a different offset. All GPUs work, except for breaks that they share.
func scraped(seed uint64, slow []plan, withReasons, withUtil bool) *series.Set {
	r := rand.New(rand.NewPCG(seed, 15))
	syms := trace.NewSymbols()
	set := series.New(syms, &trace.Diags{})
	f := set.Fill("metrics.json", "Prometheus range")
	breaks := begin + sec*trace.Time(200+r.IntN(1200))
	for host := range 2 {
		server := f.Server(series.Server{Host: []string{"node1", "node2"}[host]})
		for gpu := range 8 {
			place := f.Place(series.Place{Server: server, Rank: trace.NoRank, GPU: int32(gpu)})
			clock, util, bits := f.Series(series.SMClock, place), f.Series(series.GPUUtil, place), f.Series(series.Throttling, place)
			for t := begin + trace.Time(host)*7*sec; t < begin+1800*sec; t += 15 * sec {
				mhz, busy, why := 1980-15*float64(r.IntN(4)), 60+40*r.Float64(), 4*float64(r.IntN(2))
				if t > breaks && t < breaks+120*sec || host == 1 && gpu == 7 && t < begin+400*sec { // the last GPU gets work later
					mhz, busy, why = 345, 0, 1
				}
				for _, p := range slow {
					if p.host == host && p.gpu == gpu && t >= p.from && t < p.to && busy > 0 {
						mhz, why = p.clock-15*float64(r.IntN(3)), p.bits
					}
				}
				f.Add(clock, t, mhz)
				if withUtil {
					f.Add(util, t, busy)
				}
				if withReasons {
					f.Add(bits, t, why)
				}
			}
		}
	}
	set.Finish(series.Known{})
	return set
}

// A GPU that slows down is found, with its time, size, and reason. Nothing is found
// on other GPUs, if all are equally fast, or if some have no work.
func TestRateOfSlowClocks(t *testing.T) {
	right, all := 0, 0
	for _, seed := range testset.Seeds(t) {
		r := rand.New(rand.NewPCG(seed, 16))
		p := plan{host: r.IntN(2), gpu: r.IntN(7), from: begin + sec*trace.Time(300+r.IntN(900)), to: begin + 2000*sec, clock: 1200 + 600*r.Float64(), bits: []float64{0x40 | 0x8, 0x20, 0x80 | 0x8, 0x4}[r.IntN(4)]}
		if r.IntN(3) == 0 {
			p.to = p.from + 400*sec
		}
		found, _ := Clocks(scraped(seed, []plan{p}, true, true), nil)
		all++
		if goodClock(found, p) {
			right++
		} else {
			t.Logf("seed %d: %+v, planted %+v", seed, found, p)
		}
		for _, with := range [][2]bool{{true, true}, {false, true}, {true, false}} {
			all++
			if found, check := Clocks(scraped(seed, nil, with[0], with[1]), nil); len(found) == 0 && check.State() == finding.LookedAt {
				right++
			} else {
				t.Logf("seed %d, nothing planted, %v: %+v", seed, with, found)
			}
		}
	}
	testset.Rate(t, "slow clocks of GPUs", right, all, 98)
}

// goodClock reports whether the finding matches the plan; a break may shorten it.
func goodClock(found []finding.Finding, p plan) bool {
	if len(found) == 0 || len(found) > 2 {
		return false
	}
	f := found[0]
	late := f.Since - p.from
	reason := map[float64]string{0x48: "thermal slowdown by hardware", 0x20: "thermal slowdown by software", 0x88: "power brake by hardware", 4: "limit of power"}[p.bits]
	host := []string{"node1", "node2"}[p.host]
	return late >= 0 && late < 16*sec+136*sec && strings.Contains(f.Text, reason) && strings.Contains(f.Text, "GPU "+string(rune('0'+p.gpu))+" of "+host) &&
		f.Confidence == finding.Certain && f.Metric.After < f.Metric.Before*lower && f.Cost > 0
}

// Without throttle reasons, a slowdown is only likely: the GPU may have had less work. Without metrics, the check does not apply.
func TestDoubt(t *testing.T) {
	found, _ := Clocks(scraped(1, []plan{{host: 0, gpu: 3, from: begin + 600*sec, to: begin + 2000*sec, clock: 1410}}, false, true), nil)
	if len(found) != 1 || found[0].Confidence != finding.Likely || !strings.Contains(found[0].Text, "GPU 3 of node1 was 1,") {
		t.Errorf("%+v", found)
	}
	if _, check := Clocks(series.New(trace.NewSymbols(), &trace.Diags{}), nil); check.State() != finding.NotApplicable {
		t.Errorf("%+v", check)
	}
}

// A fatal SXid is certain, and others are not. Neither costs as much as a lost GPU.
func TestSwitches(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("fabricmanager.log", "kernel log")
	place := f.Place(series.Place{Server: f.Server(series.Server{}), Rank: trace.NoRank, GPU: series.NoGPU})
	for i, text := range []string{"SXid 12028 of switch 0000:86:00.0: non-fatal, port 61", "SXid 20034 of switch 0000:86:00.0: fatal, port 33"} {
		f.Instant(series.Instant{Time: begin + trace.Time(i)*sec, Place: place, Kind: series.Hardware}, text)
	}
	set.Finish(series.Known{})
	found, check := Errors(set)
	if len(found) != 2 || check.N != 2 || found[0].Confidence != finding.Likely || found[1].Confidence != finding.Certain || found[1].Subkind != "SXid 20034" || found[1].Cost != 0 {
		t.Errorf("%+v, %+v", found, check)
	}
}

// A GPU is lost once: the driver's messages about it within minutes are evidence of that. Messages about another GPU or a switch are not.
func TestWhatFollowsALostGPU(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("dmesg", "kernel log")
	place := f.Place(series.Place{Server: f.Server(series.Server{Host: "node3"}), Rank: trace.NoRank, GPU: series.NoGPU})
	for i, text := range []string{"SXid 24007 of switch 0000:aa:00.0", "Xid 62 of GPU 0000:48:00", "Xid 45 of GPU 0000:48:00", "Xid 119 of GPU 0000:0b:00", "Xid 74 of GPU 0000:48:00: link 8"} {
		f.Instant(series.Instant{Time: begin + trace.Time(i)*sec, Place: place, Kind: series.Hardware}, text)
	}
	f.Instant(series.Instant{Time: begin + 3600*sec, Place: place, Kind: series.Hardware}, "Xid 48 of GPU 0000:48:00")
	set.Finish(series.Known{})
	found, _ := Errors(set)
	var got []string
	for _, x := range found {
		got = append(got, fmt.Sprintf("%s+%d", x.Subkind, len(x.Evidence)))
	}
	if text := strings.Join(got, " "); text != "SXid 24007+1 Xid 62+2 Xid 119+0 Xid 48+0" {
		t.Errorf("found %s: %v", text, found)
	}
}

// An error follows the one that the driver names, whichever GPU that is, and a program's error on the same GPU the first one of that
// program; the cost of a lost GPU is unknown if nothing tells how many there are.
func TestWhatFollowsAnError(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("dmesg", "kernel log")
	place := f.Place(series.Place{Server: f.Server(series.Server{Host: "node3"}), Rank: trace.NoRank, GPU: series.NoGPU})
	for i, text := range []string{"Xid 145 of GPU 0000:ed:00: RLW_REMAP Fatal", "Xid 45 of GPU 0000:ba:00: caused by previous Xid 145", "Xid 13 of GPU 0000:cb:00", "Xid 109 of GPU 0000:cb:00", "Xid 45 of GPU 0000:aa:00"} {
		f.Instant(series.Instant{Time: begin + trace.Time(i)*sec, Place: place, Kind: series.Hardware}, text)
	}
	set.Finish(series.Known{})
	found, _ := Errors(set)
	var got []string
	for _, x := range found {
		got = append(got, fmt.Sprintf("%s+%d %g", x.Subkind, len(x.Evidence), x.Cost))
	}
	if text := strings.Join(got, ", "); text != "Xid 145+1 0, Xid 13+2 0, Xid 45+1 0" {
		t.Errorf("found %s: %v", text, found)
	}
}

// A memory error that accompanies a contained error of the same GPU is part of that, whichever is logged
// first, and equal errors of several channels are one.
func TestWhatComesWithALostGPU(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("dmesg", "kernel log")
	place := f.Place(series.Place{Server: f.Server(series.Server{Host: "node3"}), Rank: trace.NoRank, GPU: series.NoGPU})
	for i, text := range []string{"Xid 63 of GPU 0000:0b:00", "Xid 63 of GPU 0000:48:00", "Xid 94 of GPU 0000:48:00: Contained", "Xid 94 of GPU 0000:48:00"} {
		f.Instant(series.Instant{Time: begin + trace.Time(max(0, i-1))*sec/2, Place: place, Kind: series.Hardware}, text)
	}
	set.Finish(series.Known{})
	found, _ := Errors(set)
	if len(found) != 2 || found[0].Subkind != "Xid 63" || found[1].Subkind != "Xid 94" || len(found[1].Evidence) != 2 ||
		found[1].Evidence[0].Text != "along with it: Xid 63 of GPU 0000:48:00 on node3 at "+found[1].Text[strings.LastIndex(found[1].Text, " at ")+4:][:8] || found[1].Evidence[1].Text != "it was reported 2 times" {
		t.Errorf("%+v", found)
	}
}

// GPUs on two hosts have the same bus address: a lost GPU on one host does not explain an error on the other.
func TestSameBusOfTwoHosts(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("journal", "kernel log")
	for i, host := range []string{"node3", "node4"} {
		place := f.Place(series.Place{Server: f.Server(series.Server{Host: host}), Rank: trace.NoRank, GPU: series.NoGPU})
		f.Instant(series.Instant{Time: begin + trace.Time(i)*sec, Place: place, Kind: series.Hardware}, []string{"Xid 79 of GPU 0000:48:00", "Xid 45 of GPU 0000:48:00"}[i])
	}
	set.Finish(series.Known{})
	if found, _ := Errors(set); len(found) != 2 || found[1].Subkind != "Xid 45" {
		t.Errorf("%+v", found)
	}
}

// An Xid is reported once, with its count; one that ends a GPU's work is certain.
func TestErrors(t *testing.T) {
	syms := trace.NewSymbols()
	set := series.New(syms, &trace.Diags{})
	f := set.Fill("dmesg.log", "kernel log")
	place := f.Place(series.Place{Server: f.Server(series.Server{Host: "node3"}), Rank: trace.NoRank, GPU: series.NoGPU})
	for i := range 3 {
		f.Instant(series.Instant{Time: begin + trace.Time(i)*sec, Place: place, Kind: series.Hardware}, "Xid 79 of GPU 0000:91:00")
	}
	f.Instant(series.Instant{Time: begin, Place: place, Kind: series.Hardware}, "Xid 13")
	set.Finish(series.Known{})
	found, check := Errors(set)
	if len(found) != 2 || check.N != 4 || !strings.Contains(found[0].Text, "Xid 79 of GPU 0000:91:00 on node3 at ") || !strings.Contains(found[0].Text, "fallen off the bus") || found[1].Confidence != finding.Likely {
		t.Errorf("%+v, %+v", found, check)
	}
}

// Metrics keep the last error. It occurred when its code changes, even between two files. An error in the first
// scrape occurred before that.
func TestScrapedErrors(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	for i, codes := range [][2]float64{{0, 95}, {79, 95}} {
		f := set.Fill(fmt.Sprintf("scrape%d.prom", i), "Prometheus text")
		for gpu, code := range codes {
			place := f.Place(series.Place{Server: f.Server(series.Server{Host: "node3"}), Rank: trace.NoRank, GPU: int32(gpu)})
			f.Add(f.Series(series.Xid, place), begin+trace.Time(i)*600*sec, code)
		}
	}
	set.Finish(series.Known{})
	found, check := Errors(set)
	if len(found) != 2 || check.N != 2 || found[0].Since != begin+600*sec || found[0].Confidence != finding.Certain || !strings.Contains(fmt.Sprint(found[0].Evidence), "since 20:53:20") ||
		found[1].Since != 0 || found[1].Confidence != finding.Likely || !strings.Contains(found[1].Text, "before 20:53:20") {
		t.Errorf("%+v, %+v", found, check)
	}
}
