package hardware

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// hostsUnder returns half an hour of node exporter metrics of three hosts, scraped every
// 15 s. node2 has the planted shortage between from and to.
func hostsUnder(seed uint64, planted string, from, to trace.Time) *series.Set {
	r := rand.New(rand.NewPCG(seed, 91))
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("node.om", "OpenMetrics")
	counters := func(host int, name, label string, rate func(trace.Time) float64) {
		place := f.Place(series.Place{Server: f.Server(series.Server{Host: []string{"node1", "node2", "node3"}[host]}), Rank: trace.NoRank, GPU: series.NoGPU})
		id := f.SeriesOf(series.Series{Metric: f.Metric(series.Metric{Name: name, Kind: series.Counter}), Place: place, Label: set.Syms.Intern(label)})
		sum := 1e6 * r.Float64()
		for t := begin; t < begin+1800*sec; t += 15 * sec {
			f.Add(id, t, sum)
			if sum += 15 * rate(t); r.IntN(4000) == 0 { // restarted
				sum = 0
			}
		}
	}
	for host := range 3 {
		now := func(of string, t trace.Time) bool { return host == 1 && of == planted && t >= from && t < to }
		for cpu := range 4 {
			steal := func(t trace.Time) float64 {
				if now("steal", t) {
					return 0.2
				}
				return 0.01 * r.Float64()
			}
			label := "cpu=" + string(rune('0'+cpu))
			counters(host, "node_cpu_seconds_total", label+",mode=steal", steal)
			counters(host, "node_cpu_seconds_total", label+",mode=idle", func(trace.Time) float64 { return 0.4 })
			counters(host, "node_cpu_seconds_total", label+",mode=user", func(t trace.Time) float64 { return 0.6 - steal(t) })
			counters(host, "node_schedstat_running_seconds_total", label, func(trace.Time) float64 { return 0.6 })
			counters(host, "node_schedstat_waiting_seconds_total", label, func(t trace.Time) float64 {
				if now("CPU", t) {
					return 0.6 // half of 1.2
				}
				return 0.08 * r.Float64()
			})
		}
		stalled := func(of string) func(trace.Time) float64 {
			return func(t trace.Time) float64 {
				if now(of, t) {
					return 0.4
				}
				return 0.02 * r.Float64()
			}
		}
		counters(host, "node_pressure_memory_stalled_seconds_total", "", stalled("memory"))
		counters(host, "node_pressure_io_stalled_seconds_total", "", stalled("disk"))
		counters(host, "node_netstat_Tcp_OutSegs", "", func(trace.Time) float64 { return 20000 })
		counters(host, "node_netstat_Tcp_RetransSegs", "", func(t trace.Time) float64 {
			if now("network", t) {
				return 800
			}
			return 20 * r.Float64()
		})
		counters(host, "node_vmstat_oom_kill", "", func(trace.Time) float64 { return 0 })
		counters(host, "node_infiniband_symbol_error_total", "device=mlx5_0", func(trace.Time) float64 { return 40.0 / 3600 * r.Float64() })
	}
	set.Finish(series.Known{})
	return set
}

// A shortage on a host is found, with its size and start, and nothing is found on other hosts.
func TestRateOfHosts(t *testing.T) {
	parts := map[string]float64{"CPU": 0.5, "steal": 0.2, "memory": 0.4, "disk": 0.4, "network": 0.04, "nothing": 0}
	right, all := 0, 0
	for _, seed := range testset.Seeds(t) {
		r := rand.New(rand.NewPCG(seed, 92))
		for _, subkind := range slices.Sorted(maps.Keys(parts)) {
			part := parts[subkind]
			from := begin + 15*sec*trace.Time(10+r.IntN(50))
			to := from + 15*sec*trace.Time(10+r.IntN(100))
			found, check := Hosts(hostsUnder(seed, subkind, from, to))
			all++
			ok := check.State() == finding.LookedAt && check.N == 3
			switch {
			case subkind == "nothing":
				ok = ok && len(found) == 0
			case len(found) == 0:
				ok = false
			default:
				f := &found[0]
				lasts := float64(min(to, begin+1785*sec) - from)
				ok = ok && len(found) == 1 && f.Subkind == HostSubkind+subkind && strings.Contains(f.Text, "node2") && f.Since == from && (f.Until == to) == (to < begin+1785*sec) &&
					math.Abs(f.Metric.After-part) < 0.03*part && math.Abs(f.Cost-part*lasts/float64(1785*sec)/3) < 0.01
			}
			if ok {
				right++
			} else {
				t.Logf("seed %d, %s from %d to %d: %+v %v", seed, subkind, (from-begin)/sec, (to-begin)/sec, found, check)
			}
		}
	}
	testset.Rate(t, "hosts that are short of something", right, all, 98)
}

// Links that recover from errors, or that exceed the symbol error rate of a sound link, are reported.
func TestFailingLinks(t *testing.T) {
	for _, c := range []struct {
		counter string
		rate    float64
		want    string // "" is no finding
	}{
		{"node_infiniband_symbol_error_total", 100.0 / 3600, ""},
		{"node_infiniband_symbol_error_total", 400, "InfiniBand links of node1 get 120,000 symbols wrong between "},
		{"node_infiniband_link_error_recovery_total", 0.01, "InfiniBand links of node1 recover 3 times from errors, and pass nothing on meanwhile between "},
		{"node_infiniband_link_error_recovery_total", 0, ""},
		{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 400, "PCIe links of GPUs of node1 repeat 120,000 packets between "},
		{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 0.4, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("node.om", "OpenMetrics")
		place := f.Place(series.Place{Server: f.Server(series.Server{Host: "node1"}), Rank: trace.NoRank, GPU: series.NoGPU})
		id := f.SeriesOf(series.Series{Metric: f.Metric(series.Metric{Name: c.counter, Kind: series.Counter}), Place: place})
		for k := range 41 {
			f.Add(id, begin+trace.Time(15*k)*sec, 7+math.Floor(max(0, float64(15*(k-20)))*c.rate))
		}
		set.Finish(series.Known{})
		var got string
		found, _ := Hosts(set)
		for _, f := range found {
			got += f.Text
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s at %v a second: %q, want %q", c.counter, c.rate, got, c.want)
		}
	}
}

// Processes that the kernel killed are counted by the growth of the counter, without its initial value.
func TestKilledProcesses(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("node.om", "OpenMetrics")
	place := f.Place(series.Place{Server: f.Server(series.Server{Host: "node1"}), Rank: trace.NoRank, GPU: series.NoGPU})
	id := f.SeriesOf(series.Series{Metric: f.Metric(series.Metric{Name: "node_vmstat_oom_kill"}), Place: place})
	for i, v := range []float64{7, 7, 9, 9, 9} {
		f.Add(id, begin+trace.Time(i)*15*sec, v)
	}
	set.Finish(series.Known{})
	found, _ := Hosts(set)
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, "the kernel of node1 kills 2 processes because memory ran out between ") || found[0].Since != begin+15*sec {
		t.Errorf("%+v", found)
	}
}

// CPUs that are busy nearly all of the time are reported, but not CPUs that wait for disks.
func TestBusyHosts(t *testing.T) {
	for mode, want := range map[string]string{"user": "the CPUs of node1 are busy for 95 % of the time, since ", "iowait": ""} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("node.om", "OpenMetrics")
		place := f.Place(series.Place{Server: f.Server(series.Server{Host: "node1"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for name, rates := range map[string][2]float64{mode: {0.2, 0.95}, "idle": {0.8, 0.05}} {
			id := f.SeriesOf(series.Series{Metric: f.Metric(series.Metric{Name: "node_cpu_seconds_total", Kind: series.Counter}), Place: place, Label: set.Syms.Intern("cpu=0,mode=" + name)})
			sum := 0.0
			for k := range 80 {
				f.Add(id, begin+trace.Time(15*k)*sec, sum)
				sum += 15 * rates[k/40]
			}
		}
		set.Finish(series.Known{})
		found, _ := Hosts(set)
		var got string
		for _, f := range found {
			got += f.Text
		}
		if !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", mode, got)
		}
	}
}
