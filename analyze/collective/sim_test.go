package collective_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A tracedRun is a simulated run with recorded ranks.
type tracedRun struct {
	set   *profile.Set
	truth *torch.Truth
}

// traceRun records a simulated run with PyTorch's profiler, and reads the traces.
func traceRun(t *testing.T, config simulator.Config, change func(*torch.Config)) *tracedRun {
	t.Helper()
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	c := torch.DefaultConfig(run)
	c.Stacks, c.Shapes, c.Layers, c.Gzip = 0, false, 6, false
	change(&c)
	dir := t.TempDir()
	truth, err := torch.WriteDir(dir, run, c)
	if err != nil {
		t.Fatal(err)
	}
	return &tracedRun{readTraces(t, filepath.Join(dir, "torch")), truth}
}

// readTraces reads the traces of a folder and matches the collectives of their ranks.
func readTraces(t *testing.T, dir string) *profile.Set {
	t.Helper()
	files, err := inputs.Find([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	opt := inputs.Options{Filter: profile.Filter{Args: profile.ArgsNone}, Walk: true}
	in, of, err := convert.Read(files, opt, ranks.Options{}, &trace.Diags{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := convert.ForReports(in, of, convert.ReportOptions{MatchCollectives: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return &e.Profiles
}

// of returns the truth about a rank by its name, such as "decode TP0-DP1 (host)"; a
// name has only the parts that differ between ranks.
func (r *tracedRun) of(t *testing.T, name string) *torch.FileTruth {
	t.Helper()
	name, host, _ := strings.Cut(name, " (")
	role, text, found := strings.Cut(name, " ")
	if !found {
		role, text = "", role
	}
	rank, err := trace.ParseRank(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.truth.Files {
		f := &r.truth.Files[i]
		at, _ := trace.ParseRank(f.Rank)
		if at.TP == rank.TP && max(0, at.DP) == max(0, rank.DP) && strings.HasPrefix(f.Role, role) && strings.HasPrefix(f.Host, strings.TrimSuffix(host, ")")) {
			return f
		}
	}
	t.Fatalf("nobody is called %s", name)
	return nil
}

// collectiveRuns are kinds of runs, with seeds for runs with a straggler and without.
var collectiveRuns = []struct {
	name  string
	seed  func(c *simulator.Config, r *rand.Rand)
	torch func(c *torch.Config)
}{
	{"four ranks", func(c *simulator.Config, _ *rand.Rand) {
		c.Unified = simulator.Parallel{TP: 4, PP: 1, DP: 1}
	}, func(*torch.Config) {}},
	{"two ranks, graphs, no ids", func(c *simulator.Config, _ *rand.Rand) {
		c.Unified = simulator.Parallel{TP: 2, PP: 1, DP: 1}
	}, func(c *torch.Config) { c.Graphs, c.WithSeq = true, false }},
	{"eight ranks on two hosts", func(c *simulator.Config, r *rand.Rand) {
		c.Unified, c.RanksPerHost = simulator.Parallel{TP: 8, PP: 1, DP: 1}, 4
		c.HostSkew, c.HostDrift = time.Duration(r.NormFloat64()*5e6), r.NormFloat64()*10
	}, func(*torch.Config) {}},
	{"prefill and two replicas of decode", func(c *simulator.Config, _ *rand.Rand) {
		c.Mode, c.Decode = simulator.PDGateway, simulator.Parallel{TP: 2, PP: 1, DP: 2}
	}, func(*torch.Config) {}},
}

// A slow rank is found by the collectives of simulated runs, with its cause, and
// none is found if all ranks are equally fast.
func TestRateOfCollectiveStragglers(t *testing.T) {
	for _, c := range collectiveRuns {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seeds := testset.Seeds(t)
			right, quiet, compute := 0, 0, 0
			for _, seed := range seeds {
				r := rand.New(rand.NewPCG(seed, 5))
				config := simulator.DefaultConfig(seed + 1)
				config.Mode, config.Requests = simulator.Unified, 100
				c.seed(&config, r)
				ranks := config.Unified
				if config.Mode != simulator.Unified {
					ranks = config.Decode
				}
				slow := simulator.Straggler{TP: r.IntN(ranks.TP), DP: r.IntN(ranks.DP), Factor: 1.06 + 0.4*r.Float64()}
				for _, config.Straggler = range []simulator.Straggler{slow, {}} {
					run := traceRun(t, config, c.torch)
					found := run.stragglers()
					switch {
					case config.Straggler.Factor == 0 && len(found) == 0:
						quiet++
					case config.Straggler.Factor == 0:
						t.Logf("seed %d: %s", seed, found[0].Text())
					case len(found) == 1 && isAt(&found[0], &config):
						right++
						if strings.HasPrefix(found[0].Cause, "compute-bound: ") {
							compute++
						} else {
							t.Logf("seed %d: %s", seed, found[0].Text())
						}
					default:
						t.Logf("seed %d: TP%d DP%d is slow by %.2f; found %+v", seed, slow.TP, slow.DP, slow.Factor, found)
					}
				}
			}
			testset.Rate(t, "collectives: a straggler, "+c.name, right, len(seeds), 95)
			testset.Rate(t, "collectives: its cause, "+c.name, compute, len(seeds), 95)
			testset.Rate(t, "collectives: no straggler, "+c.name, quiet, len(seeds), 95)
		})
	}
}

// isAt reports whether the rank found is the planted one.
func isAt(s *straggler.Straggler, c *simulator.Config) bool {
	at := s.Location
	return at.Rank.TP == int16(c.Straggler.TP) && max(0, at.Rank.DP) == int16(c.Straggler.DP) && (at.Role == request.Decode) == (c.Mode != simulator.Unified)
}

func (r *tracedRun) stragglers() []straggler.Straggler {
	return collective.Measure(r.set, 0, 0).Stragglers(gpu.Measure(r.set, gpu.Options{}))
}

// Measure finds how long the ranks of a simulated run waited for each other, and how often each one was last.
func TestWaitsOfSimulatedCollectives(t *testing.T) {
	for _, c := range collectiveRuns {
		for _, factor := range []float64{1, 1.3} {
			config := simulator.DefaultConfig(9)
			config.Mode, config.Requests, config.Straggler.Factor = simulator.Unified, 100, factor
			c.seed(&config, rand.New(rand.NewPCG(9, 9)))
			t.Run(fmt.Sprintf("%s, slower by %v", c.name, factor), func(t *testing.T) {
				compareWaits(t, traceRun(t, config, c.torch), config.RanksPerHost > 0)
			})
		}
	}
}

// compareWaits compares waits with the truth. On one host they are exact up to
// rounding to ns. With several hosts, clocks are matched by ends that have jitter.
func compareWaits(t *testing.T, run *tracedRun, severalHosts bool) {
	t.Helper()
	got := collective.Measure(run.set, 0, 0)
	if len(got.Ranks) != len(run.truth.Files) {
		t.Errorf("%d ranks of %d", len(got.Ranks), len(run.truth.Files))
	}
	for i, r := range got.Ranks {
		want := run.of(t, r.Rank)
		group := run.truth.Groups[want.Group]
		if n := group.Collectives + group.GraphKernels; r.Sync != n {
			t.Errorf("%s was in %d collectives, want %d", r.Rank, r.Sync, n)
		}
		waited := int64(0)
		for _, ns := range got.WaitMatrix()[i] {
			waited += ns
		}
		if waited != r.Wait {
			t.Errorf("%s waited for others for %d ns, and %d in all", r.Rank, waited, r.Wait)
		}
		tolerance, others := 2*int64(r.Sync), 0
		if severalHosts {
			tolerance = run.truth.EndJitterNs * int64(r.Sync)
			others = r.Sync / 50
		}
		if off := r.Wait - want.WaitNs; max(off, -off) > tolerance {
			t.Errorf("%s waited for %d ns, want %d", r.Rank, r.Wait, want.WaitNs)
		}
		if off := r.Last - want.LastArrivals; max(off, -off) > others {
			t.Errorf("%s was last %d times, want %d", r.Rank, r.Last, want.LastArrivals)
		}
	}
}

// Eight ranks on two hosts, with clocks that differ by 1.7 ms and 12 ppm, and one
// rank that is 6 % slower. An independent generator made the traces from a real one.
func TestCollectivesOfTwoHosts(t *testing.T) {
	var truth struct {
		Last map[string]int `json:"last_arrival_count_by_rank"`
		Took []int64        `json:"collective_kernel_time_ns_by_rank"`
	}
	text, err := os.ReadFile(testinput.Shared(t, "data", "torch", "tp8_skew_2host", "ground_truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	set := readTraces(t, testinput.Shared(t, "data", "torch", "tp8_skew_2host"))
	got := collective.Measure(set, 0, 0)
	for i, r := range got.Ranks {
		// The clock's drift causes 4 us of the difference.
		if off := r.Took - truth.Took[i]; r.Last != truth.Last[strconv.Itoa(i)] || max(off, -off) > 10_000 {
			t.Errorf("%s: last %d times, took %d ns, want %d, %d", r.Rank, r.Last, r.Took, truth.Last[strconv.Itoa(i)], truth.Took[i])
		}
	}
	found := got.Stragglers(gpu.Measure(set, gpu.Options{}))
	if len(found) != 1 || found[0].Location.Rank.TP != 5 || !strings.HasPrefix(found[0].Cause, "compute-bound: its kernels run 5.9 % longer") {
		t.Errorf("found %+v", found)
	}
}
