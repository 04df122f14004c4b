package inspect

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
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

// Every span is counted once by kind; all except duplicates are counted once by rank and once by service.
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
	var b []byte
	for _, page := range []string{"METRICS.md", "COLUMNS.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, text...)
	}
	s := testset.Fixture(t)
	reports := slices.Concat(inspectSet(s), inspected(t), []*table.Table{requests.Requests(s), requests.MeasureLatencies(s).Report(), requests.WaterfallTable([]*requests.Waterfall{requests.NewWaterfall(s, 0)}), requests.GroupStages(s, requests.Dimensions).Report()})
	var words []string
	for _, r := range reports {
		words = append(words, r.Schema)
		for _, c := range r.Columns {
			words = append(words, c.Key())
		}
	}
	for _, m := range metric.Requests {
		words = append(words, m.Name)
	}
	words = append(words, request.AllFlags.Words()...)
	for _, w := range words {
		if !strings.Contains(string(b), "`"+w+"`") {
			t.Errorf("neither docs/METRICS.md nor docs/COLUMNS.md mentions `%s`", w)
		}
	}
}

// inspectSet returns the tables about the files of s.
func inspectSet(s *request.Set) []*table.Table {
	return All(&inventory.Inventory{}, s, s.Diags.All())
}

// The waterfall of a request in which every name is hostile.
func TestHostileWaterfall(t *testing.T) {
	name := strings.ToValidUTF8(strings.Join(testinput.Hostile, ""), "?")
	var d testset.Dump
	root := testset.Span{Trace: "00000000000000000000000000000001", Name: "Req 11111111", From: 0, To: 1000,
		Attrs: testset.Attrs{"rid": name, "module": "sglang::request", "gen_ai.response.model": name, "gen_ai.response.finish_reasons": name}}
	d.Thread(root, d.Add(root), name, name, 0, 1, testset.Span{Name: name, From: 0, To: 1000})
	d.Add(testset.Span{Trace: root.Trace, Parent: fmt.Sprintf("%016x", 1), Name: "Scheduler", From: 0, To: 10, Failed: true,
		Attrs: testset.Attrs{"host_id": name, "thread_label": "Scheduler", "reason": name}})
	s := d.Set(t)
	var b bytes.Buffer
	if err := requests.NewWaterfall(s, 0).Write(&b, table.Style{Width: 100}); err != nil {
		t.Fatal(err)
	}
	for _, r := range inspectSet(s) {
		b.WriteString(testset.Text(t, r, table.FormatText, table.Style{}))
	}
	for _, c := range b.String() {
		if c != '\n' && words.Hidden(c) {
			t.Fatalf("%U is printed", c)
		}
	}
}

// Damaged, foreign, and empty inputs cause no panic.
func TestEveryReportOnEveryDump(t *testing.T) {
	for _, name := range []string{
		"", "i_vllm_llm_request.jsonl", "f_collector_variants/compression_zstd_legacy_framed.bin", "f_collector_variants/format_proto_framed.bin",
		"damaged/array.json.zst", "damaged/empty_host_id.jsonl.zst", "damaged/missing_head.jsonl.zst", "damaged/truncated_last_line.jsonl.zst",
	} {
		t.Run(name, func(t *testing.T) {
			s := testset.BuildSet(t, "empty", strings.NewReader(""))
			if name != "" {
				s = testset.LoadDump(t, name)
			}
			reports := append(inspectSet(s), requests.Requests(s), requests.MeasureLatencies(s).Report(), requests.GroupStages(s, requests.Dimensions).Report())
			var b bytes.Buffer
			for r := range s.Requests {
				w := requests.NewWaterfall(s, r)
				if err := w.Write(&b, table.Style{}); err != nil {
					t.Error(err)
				}
				reports = append(reports, requests.WaterfallTable([]*requests.Waterfall{w}))
			}
			for _, r := range reports {
				for _, f := range table.Formats {
					testset.Text(t, r, f, table.Style{Width: 80})
				}
			}
		})
	}
}

// All lost spans lie in the gaps of their ranks, up to the end of the dump.
func TestGapsHoldAllThatIsLost(t *testing.T) {
	c := testset.Calm(1)
	c.Requests = 60
	dump, _ := testinput.Simulate(t, c)
	s := testset.BuildSet(t, "lossy", bytes.NewReader(testset.Lose(dump, testset.ByBatch, 0.05, 1)))
	first, last, _ := s.Bounds()
	lost, gaps := 0, 0
	for _, rank := range survey(s).ranks {
		for _, gap := range rank.tracing.Gaps {
			gaps++
			lost += gap.Lost
			if gap.From > gap.To || gap.From < first || gap.To > last {
				t.Errorf("%+v of a dump from %v to %v", gap, first, last)
			}
		}
	}
	if lost != len(s.Missing) || lost == 0 || gaps >= lost {
		t.Errorf("%d lost spans in %d gaps, want %d", lost, gaps, len(s.Missing))
	}
}
