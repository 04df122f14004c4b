package requests_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// The report by rank equals what the simulator played: every stage on every rank,
// equally often and, within the grid of SGLang's clock, equally long.
func TestReportRecoversWhatWasPlayed(t *testing.T) {
	const grid = 512 // ns: both ends of a stage lie on a grid of 256 ns
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		config := simulator.DefaultConfig(11)
		config.Mode = mode
		set, truth := testset.Simulated(t, config)
		hosts := map[string]string{}
		for _, h := range truth.Hosts {
			hosts[h.Name] = h.HostID
		}
		name := func(host, label, rank string) string {
			proc := slices.IndexFunc(set.Procs, func(p request.Proc) bool {
				return p.Host == hosts[host] && p.Label == label && (rank == "" || p.Rank == testset.Rank(t, rank))
			})
			return set.RankName(proc)
		}
		got := map[string]requests.Group{}
		by, err := requests.ParseDimensions("rank")
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range requests.GroupStages(set, by).Groups {
			got[strings.Join(g.Key, " ")] = g
		}
		for _, want := range truth.StagesByRank {
			if want.Stage == "http_request" {
				continue // gateways have no host
			}
			key := want.Stage + " " + name(want.Host, want.Label, want.Rank)
			g := got[key]
			if g.N != want.N {
				t.Errorf("%v: %s: n is %d, want %d", mode, key, g.N, want.N)
				continue
			}
			for _, c := range []struct {
				name      string
				got, want int64
			}{{"mean", g.Mean, want.Mean}, {"p50", g.P50, want.P50}, {"p90", g.P90, want.P90}, {"p99", g.P99, want.P99}, {"max", g.Max, want.Max}} {
				if c.got-c.want > grid || c.want-c.got > grid {
					t.Errorf("%v: %s: %s is %d, want %d", mode, key, c.name, c.got, c.want)
				}
			}
		}
	}
}

// The planted straggler ends its decode steps last, and the overloaded DP rank gets
// most of the requests after the onset.
func TestReportShowsWhatWasPlanted(t *testing.T) {
	for seed := range uint64(3) {
		set, truth := testset.Simulated(t, simulator.DefaultConfig(seed))
		slow := testset.Rank(t, truth.Straggler.Rank)
		last, total := map[trace.Rank]int{}, 0
		for r := range set.Requests {
			part := &set.Parts[set.Answering(&set.Requests[r])]
			ends := map[trace.Rank]trace.Time{}
			for _, th := range set.ThreadsOf(part) {
				rank := set.Procs[set.Threads[th].Proc].Rank
				for _, i := range set.StagesOf(th) {
					for _, c := range set.Tree.Children(int(i)) {
						if set.Name(int(c)) == "decode_loop" {
							ends[rank] = max(ends[rank], set.Row(int(c)).End)
						}
					}
				}
			}
			if ends[slow] == 0 {
				continue
			}
			total++
			for rank, end := range ends {
				if rank != slow && end > ends[slow] {
					last[rank]++
				}
			}
		}
		for rank, n := range last {
			if n > total/10 {
				t.Errorf("seed %d: %s ends after the straggler %s in %d of %d requests", seed, rank, slow, n, total)
			}
		}
		if total == 0 {
			t.Errorf("seed %d: the straggler %s has no decode steps", seed, slow)
		}
	}
}
