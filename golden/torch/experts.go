package torch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
)

// ExpertMode is the mode of the recorder.
type ExpertMode uint8

const (
	ExpertsStat ExpertMode = iota
	ExpertsPerPass
	ExpertsPerToken
	ExpertsOldPerToken // without counts: 2025-05
	ExpertsCSV
)

// An ExpertConfig configures the simulation. Layers below Dense have no experts.
type ExpertConfig struct {
	Seed                             uint64
	Mode                             ExpertMode
	Layers, Dense, Experts, TopK, EP int
	Passes, Tokens                   int     // tokens per pass and rank
	Hot                              int     // the planted rank
	Skew                             float64 // how much more often its experts are chosen; 1 is even
	Popular                          float64 // standard deviation of the logarithm of the popularity of experts, independently in each layer
	Redundant                        int     // physical experts in addition to the logical ones
	Same                             bool    // all ranks count all tokens
	Ring                             int     // places in the ring of ExpertsStat; 0 is one per pass
}

// ExpertRun describes the simulated run.
type ExpertRun struct {
	Counts       [][][]int64 // by pass, layer, and physical expert, each token once
	Balancedness []float64   // of each pass, as SGLang computes it, in float32
	Files        map[string][]byte
	Log          string
}

// ExpertsCanary is the first token of every prompt, which must never be shown.
const ExpertsCanary = 774411

// ExpertsStart is the time at which logging of passes begins, in Unix seconds.
const ExpertsStart = 1_770_000_000

// PlayExperts simulates a server with experts whose tokens choose some of them in each layer, and writes the dumps of its
// recorder, and the lines of its log.
func PlayExperts(c ExpertConfig) *ExpertRun {
	rng := rand.New(rand.NewPCG(c.Seed, 77))
	physical := c.Experts + c.Redundant
	choose := make([]*wheel, c.Layers)
	maps := make([][]int64, c.Layers)
	for l := range choose {
		weights := make([]float64, physical)
		for p := range weights {
			weights[p] = math.Exp(c.Popular * rng.NormFloat64())
			if p/(physical/c.EP) == c.Hot && c.Skew > 0 {
				weights[p] *= c.Skew
			}
		}
		choose[l] = newWheel(weights)
		for p := range physical {
			maps[l] = append(maps[l], int64((p+l)%c.Experts)) // an arbitrary placement
		}
	}
	t := &ExpertRun{Files: map[string][]byte{}}
	ranks := make([][]pass, c.EP)
	for p := range c.Passes {
		sum := zeros(c.Layers, physical)
		var shared pass
		for r := range c.EP {
			if r > 0 && c.Same {
				ranks[r] = append(ranks[r], shared)
				continue
			}
			x := newPass(rng, &c, choose, physical)
			ranks[r] = append(ranks[r], x)
			shared = x
			for l := range sum {
				for e, n := range x.counts[l] {
					sum[l][e] += n
				}
			}
		}
		t.Counts = append(t.Counts, sum)
		t.Balancedness = append(t.Balancedness, balancedness(sum, c.EP))
		times := int64(1)
		if c.Same {
			times = int64(c.EP)
		}
		t.log(&c, p, times)
	}
	t.write(&c, ranks, maps)
	return t
}

// A pass is the counts of one rank in one pass.
type pass struct {
	counts [][]int64 // by layer and physical expert
	chosen []int64   // by layer, token, and choice
}

func zeros(layers, experts int) [][]int64 {
	out := make([][]int64, layers)
	for l := range out {
		out[l] = make([]int64, experts)
	}
	return out
}

func newPass(rng *rand.Rand, c *ExpertConfig, choose []*wheel, physical int) pass {
	x := pass{counts: zeros(c.Layers, physical)}
	for l := range c.Layers {
		for range c.Tokens {
			for _, e := range choose[l].choose(rng, c.TopK) {
				if l < c.Dense {
					e = -1
				} else {
					x.counts[l][e]++
				}
				x.chosen = append(x.chosen, int64(e))
			}
		}
	}
	return x
}

// A wheel chooses by weight.
type wheel struct{ sums []float64 }

func newWheel(weights []float64) *wheel {
	w := &wheel{}
	sum := 0.0
	for _, v := range weights {
		sum += v
		w.sums = append(w.sums, sum)
	}
	return w
}

// choose chooses k distinct experts.
func (w *wheel) choose(rng *rand.Rand, k int) []int {
	out := make([]int, 0, k)
next:
	for len(out) < k {
		x := rng.Float64() * w.sums[len(w.sums)-1]
		e := sort.SearchFloat64s(w.sums, x)
		for _, o := range out {
			if o == e {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

// balancedness returns the result of SGLang's compute_utilization_rate, averaged over layers.
func balancedness(counts [][]int64, gpus int) float64 {
	sum := float32(0)
	for _, layer := range counts {
		each := len(layer) / gpus
		var all, most float32
		for g := range gpus {
			n := float32(0)
			for _, v := range layer[g*each : (g+1)*each] {
				n += float32(v)
			}
			all += n
			most = max(most, n)
		}
		sum += (all/float32(gpus) + 1e-5) / (most + 1e-5)
	}
	return float64(sum / float32(len(counts)))
}

// log adds the line of a pass.
func (t *ExpertRun) log(c *ExpertConfig, p int, times int64) {
	var b strings.Builder
	if p == 0 {
		fmt.Fprintf(&b, "[2026-02-02 02:40:00] server_args=ServerArgs(model_path='m', tp_size=%d, ep_size=%d, enable_expert_distribution_metrics=True)\n", c.EP, c.EP)
	}
	total := int64(0)
	for _, layer := range t.Counts[p] {
		for _, n := range layer {
			total += n * times
		}
	}
	fmt.Fprintf(&b, "[2026-02-02 02:%02d:%02d TP0 EP0] [Expert Balancedness] forward_pass_id=%d current_pass_balancedness=%.03f ", 40+p/60%20, p%60, passID(p), t.Balancedness[p])
	for _, size := range []int{10, 100, 1000} {
		sum, n := 0.0, 0
		for i := max(0, p-size+1); i <= p; i++ {
			sum += t.Balancedness[i]
			n++
		}
		fmt.Fprintf(&b, "last_%d_average_balancedness=%.03f ", size, sum/float64(n))
	}
	fmt.Fprintf(&b, " gpu_physical_count_sum=%d\n", total)
	t.Log += b.String()
}

// passID returns the number of a pass: many passes have run before the recording.
func passID(p int) int { return 1350 + p }

// write writes the files of all ranks.
func (t *ExpertRun) write(c *ExpertConfig, ranks [][]pass, maps [][]int64) {
	physical := c.Experts + c.Redundant
	switch c.Mode {
	case ExpertsStat:
		ring := max(c.Ring, c.Passes)
		values := make([]int64, ring*c.Layers*c.Experts)
		times := int64(1)
		if c.Same {
			times = int64(c.EP)
		}
		for p := range t.Counts {
			for l := range t.Counts[p] {
				for e, n := range t.Counts[p][l] {
					logical := int64(e)
					if c.Redundant > 0 {
						logical = maps[l][e]
					}
					values[(p*c.Layers+l)*c.Experts+int(logical)] += n * times
				}
			}
		}
		name := fmt.Sprintf("expert_distribution_recorder_%d.25", ExpertsStart+3600)
		t.Files[name+".pt"] = save(name, dict{{"rank", 0}, {"logical_count", tensor{[]int{ring, c.Layers, c.Experts}, values, false}}, {"average_utilization_rate_over_window", nil}})
	case ExpertsCSV:
		for r := range ranks {
			sum := zeros(c.Layers, physical)
			for _, p := range ranks[r] {
				for l := range sum {
					for e, n := range p.counts[l] {
						sum[l][e] += n
					}
				}
			}
			t.Files[fmt.Sprintf("expert_distribution_rank%d_timestamp%d.%d.csv", r, ExpertsStart+3600, 25+r)] = csv(sum)
		}
	default:
		for r := range ranks {
			name := fmt.Sprintf("expert_distribution_recorder_%d.%d_%d", ExpertsStart+3600, 25+r, r)
			t.Files[name+".pt"] = save(name, c.records(r, ranks[r], maps))
		}
	}
}

// records returns the dump of one rank.
func (c *ExpertConfig) records(rank int, passes []pass, maps [][]int64) dict {
	physical := c.Experts + c.Redundant
	var list []any
	for p, x := range passes {
		rec := dict{{"forward_pass_id", passID(p)}, {"rank", rank}, {"gatherer_key", "primary"}}
		if c.Mode != ExpertsPerPass {
			var ids, positions []any
			for i := range c.Tokens {
				ids, positions = append(ids, ExpertsCanary+i), append(positions, i)
			}
			rec = append(rec, [2]any{"input_ids", ids}, [2]any{"positions", positions}, [2]any{"extend_seq_lens", nil}, [2]any{"forward_mode", 1},
				[2]any{"topk_ids_of_layer", tensor{[]int{c.Layers, c.Tokens, c.TopK}, x.chosen, false}}, [2]any{"misc_objects", []any{}})
		}
		if c.Mode != ExpertsOldPerToken {
			rec = append(rec, [2]any{"global_physical_count", tensor{[]int{c.Layers, physical}, slices.Concat(x.counts...), false}})
		}
		list = append(list, rec)
	}
	return dict{{"records", list}, {"last_physical_to_logical_map", tensor{[]int{c.Layers, physical}, slices.Concat(maps...), true}}}
}
