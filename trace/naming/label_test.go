package naming

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

func TestParseLabel(t *testing.T) {
	for _, c := range []struct {
		label, host string
		rank        trace.Rank
		ok          bool
	}{
		{"node1", "node1", trace.NoRank, true},
		{"TP3", "", tp(3), true},
		{"tp3", "", tp(3), true},
		{"TP-3-DP-1", "", rk(3, 1, -1, -1, -1), true},
		{"node1/TP3-DP0", "node1", rk(3, 0, -1, -1, -1), true},
		{" node1 / TP3 ", "node1", tp(3), true},
		{"EP1 PP2", "", rk(-1, -1, 2, 1, -1), true},
		{"rank 7", "", global(7), true},
		{"Rank7", "", global(7), true},
		{"rank-7", "", global(7), true},
		{"7", "", global(7), true},
		{"node1/7", "node1", global(7), true},
		{"7/TP0", "7", tp(0), true},
		{"before", "before", trace.NoRank, true},
		{"TP", "TP", trace.NoRank, true},
		{"tp3x", "tp3x", trace.NoRank, true},
		{"ranked", "ranked", trace.NoRank, true},
		{"host_3", "host_3", trace.NoRank, true},
		{"", "", trace.NoRank, false},
		{"/TP3", "", trace.NoRank, false},
		{"node1/", "", trace.NoRank, false},
		{"a/b", "", trace.NoRank, false},
		{"a/b/TP3", "", trace.NoRank, false},
		{"TP1-TP2", "", trace.NoRank, false},
		{"TP99999", "", trace.NoRank, false},
		{"99999999999", "", trace.NoRank, false},
	} {
		host, rank, err := ParseLabel(c.label)
		if host != c.host || rank != c.rank || (err == nil) != c.ok {
			t.Errorf("ParseLabel(%q) = %q, %v, %v", c.label, host, text(rank), err)
		}
	}
	// Printed ranks can be used as labels.
	for _, r := range []trace.Rank{tp(0), global(7), rk(1, 2, 3, 4, -1)} {
		if _, got, err := ParseLabel(r.String()); got != r || err != nil {
			t.Errorf("ParseLabel(%q) = %v, %v", r, got, err)
		}
	}
}

func TestSplitLabel(t *testing.T) {
	exists := func(path string) bool { return path == "lr=3.json" || path == "runs/TP3=a.json" }
	for _, c := range []struct{ arg, label, path string }{
		{"a.json", "", "a.json"},
		{"node1=a.json", "node1", "a.json"},
		{"rank 7=a.json", "rank 7", "a.json"},
		{"node1/TP3=dir/a.json", "node1/TP3", "dir/a.json"},
		{"a=b=c.json", "a", "b=c.json"},
		{"lr=3.json", "", "lr=3.json"},
		{"lr=4.json", "lr", "4.json"},
		{"dir/lr=3.json", "", "dir/lr=3.json"},
		{"./a=b.json", "", "./a=b.json"},
		{"/TP3=b.json", "", "/TP3=b.json"},
		{"a/b/TP3=b.json", "", "a/b/TP3=b.json"},
		{"runs/TP3=a.json", "", "runs/TP3=a.json"},
		{`C:\lr=3.json`, "", `C:\lr=3.json`},
		{"=a.json", "", "=a.json"},
		{"a=", "", "a="},
		{"", "", ""},
	} {
		if label, path := SplitLabel(c.arg, exists); label != c.label || path != c.path {
			t.Errorf("SplitLabel(%q) = %q, %q", c.arg, label, path)
		}
	}
	if label, _ := SplitLabel("lr=3.json", nil); label != "lr" {
		t.Errorf("without exists: label %q", label)
	}
}

func TestParseProcess(t *testing.T) {
	for name, want := range map[string]trace.Rank{
		"sglang::scheduler":                      trace.NoRank,
		"sglang::scheduler_TP0":                  tp(0),
		"sglang::scheduler_DP1_TP0_EP2":          rk(0, 1, -1, 2, -1),
		"sglang::scheduler_DP1_PP2_TP3_EP4":      rk(3, 1, 2, 4, -1),
		"sglang::scheduler_PP0_ATTN_CP1_MOE_DP2": rk(-1, -1, 0, -1, -1),
		"sglang::scheduler_MOE_DP2_TP1":          tp(1),
		"sglang::scheduler_NP1":                  trace.NoRank,
		"sglang::scheduler DP1 TP0":              rk(0, 1, -1, -1, -1),
		"sglang::scheduler_TP99999":              trace.NoRank,
		"sglang::detokenizer":                    trace.NoRank,
		"sglang::data_parallel_controller":       trace.NoRank,
		"VLLM::Worker_TP1_EP1":                   rk(1, -1, -1, 1, -1),
		"VLLM::Worker_DP1_PP2_PCP7_TP3_DCP7_EP4": rk(3, 1, 2, 4, -1),
		"VLLM::EngineCore_DP1":                   rk(-1, 1, -1, -1, -1),
		"Worker_TP1":                             tp(1),
		"python3":                                trace.NoRank,
		"python3 train.py --tp TP3":              trace.NoRank,
		"HTTP2":                                  trace.NoRank,
		"pyper:trainer:0:1":                      trace.NoRank,
		"":                                       trace.NoRank,
	} {
		if got := parseProcess(name); got != want {
			t.Errorf("ParseProcess(%q) = %s, want %s", name, text(got), text(want))
		}
	}
}
