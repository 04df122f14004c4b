package requests

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// dumps are the development data that have a truth file.
var dumps = []string{
	"a_unified_tp2.jsonl", "b_pd_smg_tp2.jsonl.zst", "b2_pd_nosmg_tp2.jsonl.zst", "c_pp2_dp2.jsonl.zst",
	"d_big_tp2.jsonl.zst", "e_legacy_v1_pd_minilb.jsonl.zst",
}

// compareTruth compares a summary with the result of independent code.
func compareTruth(t *testing.T, what string, got distribution.Summary, want truthRow) {
	t.Helper()
	ns := func(ms float64) int64 { return int64(math.Round(ms * 1e6)) }
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"n", int64(got.N), int64(want.N)}, {"min", got.Min, ns(want.Min)}, {"max", got.Max, ns(want.Max)},
		{"total", got.Total, ns(want.Sum)}, {"mean", got.Mean, ns(want.Mean)},
		{"p50", got.P50, ns(want.P50)}, {"p90", got.P90, ns(want.P90)}, {"p99", got.P99, ns(want.P99)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s is %d ns, want %d", what, c.name, c.got, c.want)
		}
	}
}

func mustParse(t testing.TB, list string) []Dimension {
	t.Helper()
	by, err := ParseDimensions(list)
	if err != nil {
		t.Fatal(err)
	}
	return by
}

func TestStagesEqualTruth(t *testing.T) {
	for _, dump := range dumps {
		t.Run(dump, func(t *testing.T) {
			truth := readTruth(t, dump)
			s := testset.LoadDump(t, dump)
			stages := GroupStages(s, mustParse(t, "stage"))
			groups := stages.Groups
			// The truth does not separate stages that a retraction started again.
			again := func(stage string) bool { return stage == "decode_bootstrap" && stages.Again > 0 }
			for _, g := range groups {
				if want := truth.Stage[g.Key[0]]; again(g.Key[0]) {
					if g.N+stages.Again != int(want.N) {
						t.Errorf("%s: %d and %d anew, want %d", g.Key[0], g.N, stages.Again, int(want.N))
					}
					continue
				}
				compareTruth(t, g.Key[0], g.Summary, truth.Stage[g.Key[0]])
			}
			if len(groups) != len(truth.Stage) {
				t.Errorf("%d stages, want %d", len(groups), len(truth.Stage))
			}
			ranks, keys := 0, truthKeys(s)
			for _, g := range GroupStages(s, mustParse(t, "rank")).Groups {
				if strings.HasPrefix(g.Key[0], "smg:") {
					continue // the truth has no ranks for gateways
				}
				if ranks++; again(g.Key[0]) {
					continue
				}
				compareTruth(t, strings.Join(g.Key, " "), g.Summary, truth.StageByRank[g.Key[0]+"|"+keys[g.Key[1]]])
			}
			if ranks != len(truth.StageByRank) {
				t.Errorf("%d stages by rank, want %d", ranks, len(truth.StageByRank))
			}
		})
	}
}

// truthKeys returns the processes of servers by their names in the truth: host|label|tp0|pp1|dp2.
func truthKeys(s *request.Set) map[string]string {
	keys := map[string]string{}
	for i := range s.Procs {
		p := &s.Procs[i]
		parts := []string{p.Host[:min(8, len(p.Host))], p.Label}
		for _, part := range []struct {
			name string
			n    int16
		}{{"tp", p.Rank.TP}, {"pp", p.Rank.PP}, {"dp", p.Rank.DP}} {
			if part.n >= 0 {
				parts = append(parts, fmt.Sprint(part.name, part.n))
			}
		}
		keys[s.RankName(i)] = strings.Join(parts, "|")
	}
	return keys
}

func TestLatenciesEqualTruth(t *testing.T) {
	for _, dump := range dumps {
		t.Run(dump, func(t *testing.T) {
			truth := readTruth(t, dump)
			rows := map[string]distribution.Summary{}
			for _, l := range MeasureLatencies(testset.LoadDump(t, dump)).Rows {
				rows[l.Of+"/"+l.Metric] = l.Summary
			}
			for role, want := range truth.Root {
				what := strings.ToLower(role) + " servers/span"
				compareTruth(t, what, rows[what], want)
			}
			for role, want := range truth.TTFT {
				what := role + " servers/ttft"
				got := rows[what]
				got.Total, got.Mean = int64(math.Round(want.Sum*1e6)), int64(math.Round(want.Mean*1e6)) // the truth adds up seconds in floating point
				compareTruth(t, what, got, want)
			}
		})
	}
}

// TestCovered recomputes the covered time of every stage from the flat list of
// spans, by marking elementary intervals.
func TestCovered(t *testing.T) {
	for _, dump := range []string{"a_unified_tp2.jsonl", "b_pd_smg_tp2.jsonl.zst", "e_legacy_v1_pd_minilb.jsonl.zst"} {
		t.Run(dump, func(t *testing.T) {
			s := testset.LoadDump(t, dump)
			type key struct {
				request int
				stage   string
			}
			spans := map[key][]request.Interval{}
			for i := range s.Len() {
				if s.Kind(i) != request.Stage || s.Again(i) {
					continue
				}
				r := s.Parts[s.PartOf(i)].Request
				spans[key{r, s.Name(i)}] = append(spans[key{r, s.Name(i)}], request.Interval{From: s.Row(i).Start, To: s.Row(i).End})
			}
			want, all := map[string]int64{}, int64(0)
			for k, ivs := range spans {
				r := &s.Requests[k.request]
				want[k.stage] += coveredWithin(ivs, request.Interval{From: r.Start, To: r.End})
			}
			for i := range s.Requests {
				all += int64(s.Requests[i].End - s.Requests[i].Start)
			}
			for _, g := range GroupStages(s, mustParse(t, "stage")).Groups {
				if strings.Contains(g.Key[0], ":") {
					continue
				}
				if g.Covered != want[g.Key[0]] || g.E2E != all {
					t.Errorf("%s covers %d of %d ns, want %d of %d", g.Key[0], g.Covered, g.E2E, want[g.Key[0]], all)
				}
			}
		})
	}
}

func coveredWithin(spans []request.Interval, bounds request.Interval) int64 {
	cuts := []trace.Time{bounds.From, bounds.To}
	for _, iv := range spans {
		cuts = append(cuts, min(max(iv.From, bounds.From), bounds.To), min(max(iv.To, bounds.From), bounds.To))
	}
	slices.Sort(cuts)
	sum := int64(0)
	for i := 1; i < len(cuts); i++ {
		if slices.ContainsFunc(spans, func(iv request.Interval) bool { return iv.From <= cuts[i-1] && iv.To >= cuts[i] }) {
			sum += int64(cuts[i] - cuts[i-1])
		}
	}
	return sum
}

// Every span is in exactly one group, whatever the dimensions.
func TestGroupsPartition(t *testing.T) {
	s := testset.LoadDump(t, "b_pd_smg_tp2.jsonl.zst")
	whole := GroupStages(s, mustParse(t, "stage"))
	n, total := 0, int64(0)
	for _, g := range whole.Groups {
		n, total = n+g.N, total+g.Total
	}
	for _, d := range Dimensions {
		t.Run(d.Name, func(t *testing.T) {
			gotN, gotTotal := 0, int64(0)
			e2e := map[string]int64{}
			for _, g := range GroupStages(s, []Dimension{d}).Groups {
				gotN, gotTotal = gotN+g.N, gotTotal+g.Total
				e2e[g.Key[0]] = g.E2E
				if g.Covered > g.E2E {
					t.Errorf("%s covers %d of %d ns", g.Key[0], g.Covered, g.E2E)
				}
			}
			if gotN != n || gotTotal != total {
				t.Errorf("%d spans, %d ns; want %d, %d", gotN, gotTotal, n, total)
			}
			if d.whole && d.Name != "request" {
				sum := int64(0)
				for _, ns := range e2e {
					sum += ns
				}
				if want := whole.Groups[0].E2E; sum != want {
					t.Errorf("E2E of all groups is %d ns, want %d", sum, want)
				}
			}
		})
	}
}

func TestParseDimensions(t *testing.T) {
	names := func(by []Dimension) string {
		var out []string
		for _, d := range by {
			out = append(out, d.Name)
		}
		return strings.Join(out, ",")
	}
	for list, want := range map[string]string{
		"stage": "stage", "rank": "stage,rank", "role, host": "stage,role,host", "request,stage": "request,stage",
	} {
		if got := names(mustParse(t, list)); got != want {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
	for _, bad := range []string{"", "color", "role,,host"} {
		if _, err := ParseDimensions(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func BenchmarkGroupStages(b *testing.B) {
	s := testset.LoadDump(b, "d_big_tp2.jsonl.zst")
	for _, list := range []string{"stage", "rank", "request,stage"} {
		b.Run(list, func(b *testing.B) {
			by := mustParse(b, list)
			b.ReportAllocs()
			for b.Loop() {
				GroupStages(s, by)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.Len()), "ns/span")
		})
	}
}

// readTruth reads what independent code found in a dump.
func readTruth(t testing.TB, dump string) (truth truthFile) {
	t.Helper()
	name, _, _ := strings.Cut(dump, ".jsonl")
	b, err := os.ReadFile(testset.SharedFile(t, name+".truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &truth); err != nil {
		t.Fatal(err)
	}
	return truth
}

type truthFile struct {
	Stage       map[string]truthRow `json:"stage_ms"`
	StageByRank map[string]truthRow `json:"stage_by_rank_ms"`
	Root        map[string]truthRow `json:"root_duration_ms"`
	TTFT        map[string]truthRow `json:"ttft_attr_ms"`
}

// A truthRow has times in ms.
type truthRow struct {
	N                   int
	Mean, Min, Max, Sum float64
	P50                 float64 `json:"p50_nr"`
	P90                 float64 `json:"p90_nr"`
	P99                 float64 `json:"p99_nr"`
}
