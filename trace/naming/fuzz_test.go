package naming

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// FuzzParse checks that no path causes a panic or an impossible rank, and that neither directories
// nor compression change the result.
func FuzzParse(f *testing.F) {
	for _, c := range names {
		f.Add(c.path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		n := ParseFile(path)
		for _, k := range fields(&n.Rank) {
			if k < -1 {
				t.Fatalf("%q: %+v", path, n)
			}
		}
		if n.Time < 0 || n.PID < 0 || n.NotRank != (n.What != "") {
			t.Fatalf("%q: %+v", path, n)
		}
		if got := ParseFile("runs-TP-8/rank5/" + path); got != n {
			t.Errorf("%q: a directory changes %+v to %+v", path, n, got)
		}
		if got := ParseFile(path + ".gz"); got != n && path != "" && !strings.HasSuffix(path, "/") && !strings.HasSuffix(path, `\`) {
			t.Errorf("%q: .gz changes %+v to %+v", path, n, got)
		}
		Resolve([]Input{{Path: path, Label: path, Processes: []string{path}, HeaderRank: 1, WorldSize: 4}})
		SplitLabel(path, nil)
	})
}

// FuzzRoundTrip parses the file names that SGLang and vLLM give to a rank, with any prefix.
func FuzzRoundTrip(f *testing.F) {
	f.Add("", uint16(0), uint16(0), uint16(0), uint16(0), uint64(0), byte(0))
	f.Fuzz(func(t *testing.T, prefix string, a, b, c, d uint16, ns uint64, bits byte) {
		if strings.ContainsAny(prefix, `/\`) || prefix == "rpd" {
			return
		}
		r := rk(int16(a>>1), int16(b>>1), int16(c>>1), int16(d>>1), int32(a)+int32(b))
		sgl, part := sglangName(prefix, r, 1e18+int64(ns%2e18), bits)
		if got := ParseFile(sgl); got != part {
			t.Errorf("%s\n got %+v\nwant %+v", sgl, got, part)
		}
		time := 1e18 + int64(ns%2e18)
		name := fmt.Sprintf("dp%d_pp%d_tp%d_dcp0_ep%d_rank%d.%d.pt.trace.json.gz", r.DP, r.PP, r.TP, r.EP, r.Global, time)
		want := Name{Rank: r, Run: prefix, Time: time, Producer: "vllm"}
		if prefix != "" {
			name = prefix + "_" + name
		}
		if got := ParseFile(name); got.Rank != want.Rank || got.Time != want.Time || got.Producer != "vllm" || got.NotRank {
			t.Errorf("%s\n got %+v\nwant %+v", name, got, want)
		}
	})
}

// sglangName names a file as SGLang's scheduler does.
func sglangName(prefix string, r trace.Rank, ns int64, bits byte) (string, Name) {
	id := fmt.Sprintf("%d.%07d", ns/1e9, ns%1e9/100)
	n := Name{Rank: tp(r.TP), Run: id, Time: ns / 100 * 100, Producer: "sglang"}
	s := fmt.Sprintf("%s-TP-%d", id, r.TP)
	if prefix != "" {
		s = prefix + "-" + s
	}
	if bits&1 != 0 {
		n.Rank.DP = r.DP
		s += fmt.Sprintf("-DP-%d", r.DP)
	}
	if bits&2 != 0 {
		n.Rank.PP = r.PP
		s += fmt.Sprintf("-PP-%d", r.PP)
	}
	if bits&4 != 0 {
		n.Rank.EP = r.EP
		s += fmt.Sprintf("-EP-%d", r.EP)
	}
	n.Stage = [...]string{"", "EXTEND", "DECODE", "prefill", "decode"}[bits>>3%5]
	if n.Stage != "" {
		s += "-" + n.Stage
	}
	return s + ".trace.json.gz", n
}
