package slow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A loop is how a scheduler spends each second, how many s a token takes, and the share of its steps without a graph.
type loop struct{ idle, picking, waiting, cpu, token, plain float64 }

// played returns n scrapes of a scheduler, every 15 s.
func (s scheduler) played(n int) *telemetry.Logged {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "test")
	p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
	counts := map[string]float64{}
	random := rand.New(rand.NewPCG(1, 2))
	for k := range n {
		at := trace.Time(1787000000+15*k) * second
		add := func(name, label string, by float64) {
			x := series.Series{Metric: f.Metric(series.Metric{Name: "sglang:" + name, Kind: series.Counter}), Place: p, Label: set.Syms.Intern(label)}
			f.Add(f.SeriesOf(x), at, counts[name+label])
			counts[name+label] += by * 15
		}
		now := s(k)
		noise := 0.9 + 0.2*random.Float64()
		f.Add(f.Series(series.Running, p), at, 30)
		f.Add(f.Series(series.Generation, p), at, 30/now.token)
		add("scheduler_stage_seconds_total", "category=idle", now.idle)
		for _, overlap := range []string{"none", "full"} {
			add("scheduler_stage_seconds_total", "category=get_next_batch_to_run,forward_overlap="+overlap, now.picking*noise/2)
		}
		add("scheduler_stage_seconds_total", "category=recv_requests", 0.02)
		add("scheduler_stage_seconds_total", "category=process_batch_result", now.waiting)
		add("scheduler_stage_seconds_total", "category=run_batch", max(0, 0.98-now.idle-now.picking*noise-now.waiting))
		if now.idle > 0 || counts["scheduler_idle_seconds_total"] > 0 {
			add("scheduler_idle_seconds_total", "", now.idle)
		}
		add("scheduler_process_cpu_seconds_total", "", now.cpu)
		add("cuda_graph_passes_total", "mode=decode_cuda_graph", (1-now.plain)/now.token)
		add("cuda_graph_passes_total", "mode=decode_none", now.plain/now.token)
		for _, most := range []float64{0.01, 0.02, 0.05, 0.1, math.Inf(1)} {
			f.Add(f.SeriesOf(series.Series{Metric: series.ITL, Place: p, Most: most}), at, counts[fmt.Sprint("itl", most)])
			if most >= now.token {
				counts[fmt.Sprint("itl", most)] += 15 * 30 / now.token
			}
		}
		add("inter_token_latency_seconds_sum", "", 30)
		add("inter_token_latency_seconds_count", "", 30/now.token)
	}
	set.Finish(series.Known{})
	return telemetry.Measure(set, telemetry.Options{})
}

// A scheduler returns its loop in the k-th interval.
type scheduler func(k int) loop

// If a scheduler spends more of its time between batches, and tokens take longer, the finding names the stage, and
// says whether it computes meanwhile. A scheduler that waits longer for its GPU, or has less to do, is not at fault.
func TestTimeBetweenBatches(t *testing.T) {
	usual := loop{picking: 0.05, waiting: 0.6, cpu: 0.9, token: 0.015}
	for _, test := range []struct {
		name string
		then loop
		want []string // parts of the texts; nil is no finding
		// asMuch is true if the time between batches is the same as before.
		asMuch bool
	}{
		{"as before", usual, nil, true},
		{"picks batches for longer", loop{picking: 0.45, waiting: 0.3, cpu: 0.95, token: 0.024},
			[]string{"the scheduler of unified spends 47 % of its time on work between batches, 7.1 % before", "it spends 45 % in get_next_batch_to_run, 5.1 % before", "its process uses 0.950 CPUs, 0.900 before", "a token takes 24 ms on unified, 15 ms before"}, false},
		{"is kept from its CPU", loop{picking: 0.4, waiting: 0.3, cpu: 0.3, token: 0.024}, []string{"its process uses 0.300 CPUs, 0.900 before"}, false},
		{"waits for its GPU", loop{picking: 0.03, waiting: 0.85, cpu: 0.9, token: 0.024}, nil, true},
		{"waits for its GPU, and picks batches for longer", loop{picking: 0.15, waiting: 0.8, cpu: 0.9, token: 0.045}, nil, false},
		{"nobody pays", loop{picking: 0.4, waiting: 0.3, cpu: 0.9, token: 0.015}, nil, false},
		{"has larger batches than graphs", loop{picking: 0.03, waiting: 0.8, cpu: 0.9, token: 0.03, plain: 0.98},
			[]string{"2.0 % of the decode steps of unified run as a CUDA graph, 100 % before", "a token takes 30 ms on unified, 15 ms before"}, true},
		{"has less to do", loop{idle: 0.5, picking: 0.3, waiting: 0.1, cpu: 0.9, token: 0.024}, nil, false},
	} {
		l := scheduler(func(k int) loop {
			if k >= 30 {
				return test.then
			}
			return usual
		}).played(60)
		found, _ := Worsened(l)
		if len(found) != min(1, len(test.want)) {
			t.Errorf("%s: %+v", test.name, found)
			continue
		}
		for _, want := range test.want {
			if said := fmt.Sprint(found[0].Text, found[0].Evidence); !strings.Contains(said, want) {
				t.Errorf("%s: says %s, want %q", test.name, said, want)
			}
		}
		begins := trace.Time(1787000000+15*30) * second
		if len(found) > 0 && (found[0].Since > begins || found[0].Since < begins-15*second || !(found[0].Cost > 0.1)) {
			t.Errorf("%s: since %d, cost %g", test.name, found[0].Since, found[0].Cost)
		}
		if said := asMuchBetween(l, &l.Ranks[0], begins, 0); (len(said) > 0) != test.asMuch {
			t.Errorf("%s: says %v", test.name, said)
		}
	}
}
