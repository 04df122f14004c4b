package routing

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/serverlog"
	"github.com/sgtrace/sgtrace/format/sglang"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// readDumps reads the files of a simulated server.
func readDumps(t testing.TB, truth *torch.ExpertRun) *recorder.Experts {
	t.Helper()
	set := &recorder.Experts{}
	dir := t.TempDir()
	for name, data := range truth.Files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		in := &format.Input{Name: path, Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
		if _, err := sglang.ExpertDump.Index(in, &format.Options{Diags: &trace.Diags{}, Experts: set}); err != nil {
			t.Fatal(err)
		}
	}
	set.Finish()
	return set
}

// readLog reads the log of a simulated server.
func readLog(t testing.TB, truth *torch.ExpertRun) *series.Set {
	t.Helper()
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	in := &format.Input{Name: "server.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(truth.Log)), nil }}
	if _, err := serverlog.Format.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Series: set, Records: spantable.NewRequestRecords(set), Flight: recorder.NewInFlight(set.Syms)}); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	return set
}

// The balancedness of each pass equals what SGLang logs, and tokens add up.
func TestLikeTheLog(t *testing.T) {
	for _, mode := range []torch.ExpertMode{torch.ExpertsStat, torch.ExpertsPerPass, torch.ExpertsPerToken, torch.ExpertsOldPerToken} {
		for _, same := range []bool{false, true} {
			c := torch.ExpertConfig{Seed: 5, Mode: mode, Layers: 6, Dense: 2, Experts: 32, TopK: 4, EP: 4, Passes: 30, Tokens: 30, Popular: 0.5, Same: same}
			truth := torch.PlayExperts(c)
			log := readLog(t, truth)
			r := Measure(readDumps(t, truth), Options{Series: log})
			if len(r.Sources) != 2 {
				t.Fatalf("%d sources", len(r.Sources))
			}
			dump, lines := r.Sources[0], r.Sources[1]
			if dump.EP != c.EP || dump.By != "log" || lines.Passes != c.Passes || dump.Layers != c.Layers-c.Dense {
				t.Errorf("EP %d by %q, %d passes, %d layers", dump.EP, dump.By, lines.Passes, dump.Layers)
			}
			tokens := int64(0)
			for p := range truth.Counts {
				x := &dump.ByPass[p]
				if math.Abs(x.Logged-truth.Balancedness[p]) > 1e-6 || math.Abs(x.Logged-lines.balance[p]) > 0.0005001 {
					t.Fatalf("mode %d, pass %d: %v, SGLang computes %v and logs %v", mode, p, x.Logged, truth.Balancedness[p], lines.balance[p])
				}
				for _, layer := range truth.Counts[p] {
					for _, n := range layer {
						tokens += n
					}
				}
			}
			ranks := 0.0
			for g := range dump.ByRank {
				ranks += dump.ByRank[g].Tokens
			}
			if dump.Tokens != tokens || math.Abs(ranks-float64(tokens)) > 1e-3 {
				t.Errorf("mode %d: %d tokens, %v by rank, want %d", mode, dump.Tokens, ranks, tokens)
			}
		}
	}
}

// The expected maximum under even routing agrees with simulation, for few tokens and for many.
func TestBusiestByChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, gpus := range []int{2, 8, 64} {
		c := newChance(gpus)
		for _, n := range []int{1, 3, 20, 64, 65, 500, 20_000} {
			runs, sum := 4000, 0
			if n > 1000 {
				runs = 100
			}
			for range runs {
				got, most := make([]int, gpus), 0
				for range n {
					g := rng.IntN(gpus)
					got[g]++
					most = max(most, got[g])
				}
				sum += most
			}
			seen, want := float64(sum)/float64(runs), c.busiest(int64(n))
			if math.Abs(seen-want) > 0.02*want {
				t.Errorf("%d tokens, %d GPUs: the busiest gets %v, and %v as computed", n, gpus, seen, want)
			}
		}
		if n := int64(manyTokens * gpus); math.Abs(c.busiest(n-1)-c.busiest(n)) > 1 {
			t.Errorf("%d GPUs: %v and %v where another formula begins", gpus, c.busiest(n-1), c.busiest(n))
		}
	}
}

// planted configures a simulated server with many layers and few tokens, or the other way around. With
// few layers and experts of very different popularity, a hot rank could not be told from popular experts.
func planted(seed uint64, skew float64) torch.ExpertConfig {
	r := rand.New(rand.NewPCG(seed, 38))
	ep := []int{4, 8, 16}[r.IntN(3)]
	if r.IntN(3) == 0 {
		return torch.ExpertConfig{Seed: seed, Mode: torch.ExpertMode(r.IntN(int(torch.ExpertsCSV) + 1)), Layers: 3 + r.IntN(8), Dense: r.IntN(2), Experts: ep * (8 + r.IntN(12)),
			TopK: 2 + r.IntN(5), EP: ep, Passes: 10 + r.IntN(10), Tokens: 400 / ep, Hot: r.IntN(ep), Skew: skew, Popular: []float64{0, 0.1}[r.IntN(2)], Same: r.IntN(4) == 0}
	}
	return torch.ExpertConfig{Seed: seed, Mode: []torch.ExpertMode{torch.ExpertsStat, torch.ExpertsPerPass, torch.ExpertsPerToken, torch.ExpertsCSV}[r.IntN(4)], Layers: 16 + r.IntN(30), Dense: r.IntN(3), Experts: ep * (8 + r.IntN(12)),
		TopK: 2 + r.IntN(5), EP: ep, Passes: 6 + r.IntN(8), Tokens: 4 + r.IntN(20), Hot: r.IntN(ep), Skew: skew, Popular: []float64{0, 0.1, 0.3}[r.IntN(3)], Same: r.IntN(4) == 0}
}

// A rank whose experts get more tokens is found, and no other.
func TestRateOfHotRanks(t *testing.T) {
	for _, skew := range []float64{1, 1.2, 1.5, 2} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			seeds := testset.Seeds(t)
			right := 0
			for _, seed := range seeds {
				c := planted(seed, skew)
				r := Measure(readDumps(t, torch.PlayExperts(c)), Options{EP: c.EP})
				found, check := r.Findings()
				var at []string
				for _, f := range found {
					if strings.HasPrefix(f.Subkind, "experts ") {
						at = append(at, f.At.RankName())
					}
				}
				ok := len(at) == 0
				if skew > 1 {
					ok = len(at) == 1 && at[0] == fmt.Sprintf("EP%d", c.Hot)
				}
				if ok && check.State() == finding.LookedAt {
					right++
				} else {
					t.Logf("seed %d, %+v: %v", seed, c, at)
				}
			}
			what := fmt.Sprintf("experts of one rank that get %v times the tokens", skew)
			if skew == 1 {
				what = "experts: no rank is said to be hot that is not"
			}
			testset.Rate(t, what, right, len(seeds), 95)
		})
	}
}

// Nothing is found if tokens choose experts evenly, whatever their number.
func TestRateOfEvenExperts(t *testing.T) {
	seeds := testset.Seeds(t)
	right := 0
	for _, seed := range seeds {
		c := planted(seed, 1)
		c.Popular = 0
		if found, _ := Measure(readDumps(t, torch.PlayExperts(c)), Options{EP: c.EP}).Findings(); len(found) == 0 {
			right++
		} else {
			t.Logf("seed %d, %+v: %v", seed, c, found[0].Text)
		}
	}
	testset.Rate(t, "experts: nothing is found where routing is even", right, len(seeds), 95)
}

// kernels yields a kernel of experts for each rank.
type kernels struct {
	profile.Stream
	name trace.Sym
	took []int64
}

func (k *kernels) Kernels(yield func(*profile.Kernel) bool) {
	for rank, ns := range k.took {
		if !yield(&profile.Kernel{Event: profile.Event{Start: 1e18, End: 1e18 + trace.Time(ns), Name: k.name, Rank: int32(rank)}}) {
			return
		}
	}
}

// The duration of expert kernels confirms or refutes that a rank has more work.
func TestConfirmed(t *testing.T) {
	c := torch.ExpertConfig{Seed: 4, Mode: torch.ExpertsPerPass, Layers: 12, Experts: 32, TopK: 4, EP: 4, Passes: 4, Tokens: 40, Hot: 2, Skew: 1.5}
	set := readDumps(t, torch.PlayExperts(c))
	for want, took := range map[string][]int64{
		"confirmed: profiles have 1.33 times": {1e6, 1e6, 1.5e6, 1e6},
		"refuted: profiles have 1.00 times":   {1e6, 1e6, 1.001e6, 1e6},
		"refuted: profiles have 0.89 times":   {1.5e6, 1e6, 1e6, 1e6},
	} {
		syms := trace.NewSymbols()
		p := &profile.Set{Syms: syms, Ranks: []string{"TP0 EP0", "TP1 EP1", "TP2 EP2", "TP3 EP3"}}
		p.Streams = []profile.Stream{&kernels{name: syms.Intern("void deep_gemm::sm90_fp8_gemm_1d2d_impl<(GemmType)1>"), took: took}}
		r := Measure(set, Options{Profiles: p})
		found, _ := r.Findings()
		if r.Sources[0].By != "ranks of profiles" || len(found) != 1 {
			t.Fatalf("%q, %v", r.Sources[0].By, found)
		}
		if text := strings.Join(finding.Sentences(found[0].Evidence), "\n"); !strings.Contains(text, want) {
			t.Errorf("%v: %s", took, text)
		}
		if _, ok := r.Even("TP2 EP2"); ok {
			t.Error("the hot rank is said to be even")
		}
		if text, ok := r.Even("TP1 EP1"); !ok || !strings.Contains(text, "routing is not why") {
			t.Errorf("even: %q", text)
		}
	}
}

// A log shows since when experts have been less balanced.
func TestSinceWhen(t *testing.T) {
	even := torch.PlayExperts(torch.ExpertConfig{Seed: 1, Layers: 8, Experts: 32, TopK: 4, EP: 4, Passes: 60, Tokens: 60})
	if found, _ := Measure(nil, Options{Series: readLog(t, even)}).Findings(); len(found) != 0 {
		t.Errorf("of even experts: %v", found[0].Text)
	}
	skewed := torch.PlayExperts(torch.ExpertConfig{Seed: 2, Layers: 8, Experts: 32, TopK: 4, EP: 4, Passes: 120, Tokens: 60, Skew: 2})
	lines := strings.SplitAfter(even.Log, "\n")
	later := strings.SplitAfter(skewed.Log, "\n")
	even.Log = strings.Join(lines[:61], "") + strings.Join(later[61:], "")
	found, _ := Measure(nil, Options{Series: readLog(t, even)}).Findings()
	if len(found) != 1 || math.Abs(float64(found[0].Since/1e9-(torch.ExpertsStart+60))) > 2 || found[0].P.P > 0.001 {
		t.Errorf("%+v", found)
	}
}
