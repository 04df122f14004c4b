package analyze

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/internal/testset"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/request"
)

func TestLayouts(t *testing.T) {
	for dump, want := range map[string]string{
		"a_unified_tp2.jsonl": "sglang v2 (2026-04)", "b_pd_smg_tp2.jsonl.zst": "sglang v2 (2026-04); smg gateway",
		"e_legacy_v1_pd_minilb.jsonl.zst": "sglang v1b (2025-10)", "i_vllm_llm_request.jsonl": "vllm-server vllm",
	} {
		t.Run(dump, func(t *testing.T) {
			var got []string
			for _, row := range survey(testset.LoadDump(t, dump)).services {
				got = append(got, row.service+" "+row.layouts.String())
			}
			if list := strings.Join(got, "; "); list != want {
				t.Errorf("%s, want %s", list, want)
			}
		})
	}
}

// Every span is counted once by kind, and all that is not a duplicate once by
// rank and once by service.
func TestInspectCountsEverySpan(t *testing.T) {
	for _, dump := range []string{"a_unified_tp2.jsonl", "b_pd_smg_tp2.jsonl.zst", "i_vllm_llm_request.jsonl", "damaged/duplicated_line.jsonl.zst", "damaged/missing_head.jsonl.zst"} {
		t.Run(dump, func(t *testing.T) {
			s := testset.LoadDump(t, dump)
			v := survey(s)
			kinds, duplicates, ranks, services := 0, 0, 0, 0
			for _, c := range v.counts {
				if c.of == "spans" {
					kinds += c.n
				}
				if c.what == kindWords[request.Duplicate] {
					duplicates = c.n
				}
			}
			for _, r := range v.ranks {
				ranks += r.spans
			}
			for _, r := range v.services {
				services += r.spans
			}
			if kinds != s.Len() || services != s.Len()-duplicates || ranks != services {
				t.Errorf("%d spans: %d by kind, %d by service, %d by rank, %d duplicates", s.Len(), kinds, services, ranks, duplicates)
			}
		})
	}
}

// The reference documents every column and every dimension.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	s := testset.Fixture(t)
	reports := slices.Concat(inspectSet(s), inspected(t), []*Report{Requests(s), MeasureLatencies(s).Report(), NewWaterfall(s, 0).Report(), GroupStages(s, Dimensions).Report()})
	var words []string
	for _, r := range reports {
		words = append(words, r.Schema)
		for _, c := range r.Columns {
			words = append(words, c.Key())
		}
	}
	for _, m := range requestMetrics {
		words = append(words, m.name)
	}
	words = append(words, request.AllFlags.Words()...)
	for _, w := range words {
		if !strings.Contains(string(b), "`"+w+"`") {
			t.Errorf("docs/METRICS.md does not mention `%s`", w)
		}
	}
}

// inspectSet says what is in the files of s.
func inspectSet(s *request.Set) []*Report {
	return InspectAll(&inventory.Inventory{}, s, s.Diags.All())
}
