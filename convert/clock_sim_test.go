package convert

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Wrong clocks in simulated runs are nearly always recovered within the printed bound, from
// requests, from collectives, and from both.
func TestRateOfClocks(t *testing.T) {
	for _, c := range []struct {
		name         string
		otlp, torch  bool
		change       func(c *simulator.Config, r *rand.Rand)
		changeTorch  func(c *torch.Config)
		offset, ppms float64 // maximum useful bounds, in ns and ppm
	}{
		{name: "requests through a gateway", otlp: true, offset: 5e6, // to the farther end
			change: func(c *simulator.Config, _ *rand.Rand) { c.Mode = simulator.PDGateway }},
		{name: "requests without a gateway", otlp: true, offset: 20e6,
			change: func(c *simulator.Config, _ *rand.Rand) { c.Mode = simulator.PDDirect }},
		{name: "collectives", torch: true, offset: 3e3,
			change: func(c *simulator.Config, _ *rand.Rand) {
				c.Mode, c.Unified, c.RanksPerHost = simulator.Unified, simulator.Parallel{TP: 4, PP: 1, DP: 1}, 2
			}},
		{name: "collectives without ids", torch: true, offset: 3e3,
			change: func(c *simulator.Config, _ *rand.Rand) {
				c.Mode, c.Unified, c.RanksPerHost = simulator.Unified, simulator.Parallel{TP: 4, PP: 1, DP: 1}, 2
			},
			changeTorch: func(c *torch.Config) { c.WithSeq, c.Graphs, c.Ragged = false, true, 2 }},
		{name: "both", otlp: true, torch: true, offset: 3e6,
			change: func(c *simulator.Config, _ *rand.Rand) {
				c.Mode, c.RanksPerHost = simulator.PDGateway, 1
				c.Decode = simulator.Parallel{TP: 2, PP: 1, DP: 1}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clocks, missed := 0, 0
			for _, seed := range testset.Seeds(t) {
				r := rand.New(rand.NewPCG(seed, 77))
				config := simulator.DefaultConfig(seed + 1)
				config.Requests = 100
				skew := func() time.Duration { return time.Duration(r.NormFloat64() * 5e6) }
				config.PrefillSkew, config.DecodeSkew, config.HostSkew = skew(), skew(), skew()
				config.PrefillDrift, config.DecodeDrift, config.HostDrift = r.NormFloat64()*10, r.NormFloat64()*10, r.NormFloat64()*10
				c.change(&config, r)
				n, miss := checkClocks(t, config, c.otlp, c.torch, c.changeTorch, c.offset)
				clocks, missed = clocks+n, missed+miss
			}
			testset.Rate(t, "clocks within their bounds, "+c.name, clocks-missed, clocks, 95)
		})
	}
}

// checkClocks merges a simulated run and returns the number of matched clocks, and how many of them
// are outside their bounds.
func checkClocks(t *testing.T, config simulator.Config, otlp, traces bool, changeTorch func(*torch.Config), widest float64) (n, missed int) {
	t.Helper()
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	tc := torch.DefaultConfig(run)
	tc.Seed, tc.Stacks, tc.Gzip, tc.Shapes = config.Seed, 0, false, false
	if changeTorch != nil {
		changeTorch(&tc)
	}
	dir := t.TempDir()
	if err := golden.WriteDir(dir, run, &tc, nil); err != nil {
		t.Fatal(err)
	}
	var args []string
	if otlp {
		args = append(args, dir+"/otel.jsonl")
	}
	if traces {
		args = append(args, dir+"/torch")
	}
	m, _ := readAll(t, inputs.Options{}, args...)
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	truth := run.Truth()
	of := func(c *clocks.HostClock) *simulator.HostTruth {
		for i := range truth.Hosts {
			h := &truth.Hosts[i]
			for _, name := range c.Names {
				if name == h.Name || name == h.HostID[:8] || name == "smg" && h.Name == truth.ReferenceHost {
					return h
				}
			}
		}
		t.Fatalf("no host has the clock of %v", c.Names)
		return nil
	}
	reference := of(m.clocks.HostClocks[m.clocks.Reference])
	for i, c := range m.clocks.HostClocks {
		if i == m.clocks.Reference || c.Fit.Why != trace.SyncMatched {
			continue
		}
		host := of(c)
		n++
		out := false
		for _, at := range []int64{c.Fit.From, c.Fit.T0, c.Fit.To} {
			since := float64(at - truth.StartNs)
			want := float64(host.SkewNs-reference.SkewNs) + (host.DriftPPM-reference.DriftPPM)*since/1e6
			have := float64(c.Fit.Offset) + float64(c.Fit.DriftPPB)*float64(at-c.Fit.T0)/1e9
			bound := float64(c.Fit.BoundAt(at))
			out = out || have-want > bound+2 || want-have > bound+2
			if bound > widest {
				t.Errorf("seed %d: the bound of %s is %.0f ns, which helps nobody", config.Seed, c.Label(), bound)
			}
		}
		if out {
			missed++
		}
	}
	return n, missed
}

// A decode host's clock gains 20 us per second for twelve minutes. Reports and timelines state the
// drift, and requests are corrected for it.
func TestDriftOfLongDumps(t *testing.T) {
	for _, mode := range testset.DisaggregatedModes {
		config := testset.Calm(uint64(mode) + 1)
		config.Mode, config.Requests, config.Rate = mode, 200, 200./720
		config.DecodeSkew, config.DecodeDrift = 0, 20
		run, err := simulator.Play(config)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := golden.WriteDir(dir, run, nil, nil); err != nil {
			t.Fatal(err)
		}
		drawn, _ := readAll(t, inputs.Options{}, dir+"/otel.jsonl")
		if err := drawn.align(nil, true); err != nil {
			t.Fatal(err)
		}
		read, _ := readAll(t, inputs.Options{Walk: true}, dir+"/otel.jsonl")
		e, err := ForReports(read.in, read.of, ReportOptions{MatchCollectives: true})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(e.Clocks, drawn.clocks.Report(drawn.of)) {
			t.Errorf("mode %v: reports have the clocks %+v, timelines %+v", mode, e.Clocks, drawn.clocks.Report(drawn.of))
		}
		e.OnOneClock()
		last := &e.Clocks.Clocks[len(e.Clocks.Clocks)-1]
		if ppm := float64(last.DriftPPB) / 1000; ppm < 18.5 || ppm > 21.5 {
			t.Errorf("mode %v: %s, planted +20 ppm", mode, last)
		}
		decode := e.Requests.PartsOf(&e.Requests.Requests[0])[len(e.Requests.PartsOf(&e.Requests.Requests[0]))-1]
		proc := e.Requests.Parts[decode].Proc
		_, end, _ := e.Requests.Bounds()
		if d := e.Requests.Clocks.Drifted(proc, 0, end); d > -6e6 || d < -9e6 {
			t.Errorf("mode %v: at the end, the clock of %s is %d ns off the one of the middle", mode, e.Requests.HostOf(proc), -d)
		}
	}
}

// An arrow connects the stage in which a request was scheduled to the step that ran the batch, on
// the same rank and with the same batch size.
func TestBatchesOfSimulatedRun(t *testing.T) {
	config := simulator.DefaultConfig(3)
	config.Requests = 100
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	torch := torch.DefaultConfig(run)
	torch.Stacks, torch.Layers = 0, 4
	dir := t.TempDir()
	if err := golden.WriteDir(dir, run, &torch, nil); err != nil {
		t.Fatal(err)
	}
	m, tr := mergeAll(t, dir+"/otel.jsonl", dir+"/torch")
	for _, r := range m.of.Tracks {
		if r.Proc < 0 {
			t.Fatalf("%s was not found among the processes of the requests", r.Name)
		}
	}
	n, early := 0, 0
	for _, f := range tr.Flows {
		if tr.Syms.Name(f.Name) != "run by" {
			continue
		}
		n++
		from, to := &tr.Slices[f.From], &tr.Slices[f.To]
		a, b := &tr.Tracks[from.Track], &tr.Tracks[to.Track]
		if a.PID != b.PID || a.Rank.TP != b.Rank.TP || b.Rank.DP >= 0 && a.Rank.DP != b.Rank.DP {
			t.Fatalf("a stage of pid %d, %s leads to a step of pid %d, %s", a.PID, a.Rank, b.PID, b.Rank)
		}
		if to.Time < from.Time-drawing.ScheduleSlack {
			early++
		}
	}
	steps := 0
	for _, r := range m.of.Tracks {
		for _, c := range r.Captures {
			for _, s := range c.File.Steps {
				if !s.OnGPU {
					steps++
				}
			}
		}
	}
	if n < steps || early > 0 {
		t.Errorf("%d arrows to %d steps, %d of them backwards", n, steps, early)
	}
}

// A clock that agrees with the requests is not corrected.
func TestAgreeingClockIsNotMoved(t *testing.T) {
	config := simulator.DefaultConfig(5)
	config.Requests, config.PrefillSkew, config.DecodeSkew = 100, 0, 6*time.Millisecond
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := golden.WriteDir(dir, run, nil, nil); err != nil {
		t.Fatal(err)
	}
	m, _ := readAll(t, inputs.Options{}, dir+"/otel.jsonl")
	if err := m.align(nil, true); err != nil {
		t.Fatal(err)
	}
	moved := 0
	for i, c := range m.clocks.HostClocks {
		if i != m.clocks.Reference && c.Fit.Offset != 0 {
			moved++
			if off := c.Fit.Offset - 6e6; max(off, -off) > c.Fit.Bound {
				t.Errorf("%s is %d ns ahead within %d, want 6 ms", c.Label(), c.Fit.Offset, c.Fit.Bound)
			}
		}
	}
	if moved != 1 {
		t.Errorf("%d clocks are moved, want that of the decode host", moved)
	}
}
