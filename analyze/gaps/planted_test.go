package gaps_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// planted are stalls, and their names in the finding and in the row of the longest gap.
var planted = []struct {
	name  string
	stall torch.Stall
	says  string // in the text of the finding
	idle  gpu.Reason
	did   host.Activity
	where string
}{
	{"item", torch.Stall{Cause: torch.StallItem, Length: 18 * time.Millisecond, Every: 2},
		"follows cudaStreamSynchronize under aten::item in forward_batch_generation() (tp_worker.py:335)",
		gpu.AfterSync, host.InPython, "forward_batch_generation() (tp_worker.py:335)"},
	{"pageable copy", torch.Stall{Cause: torch.StallPageable, Length: 8 * time.Millisecond, Every: 2},
		"is a copy of pageable memory: cudaMemcpyAsync under aten::to in process_batch_result() (scheduler.py:2376)",
		gpu.BetweenSteps, host.CopyingPageable, "cudaMemcpyAsync under aten::to in process_batch_result() (scheduler.py:2376)"},
	{"allocator", torch.Stall{Cause: torch.StallMalloc, Length: 8 * time.Millisecond, Every: 2},
		"is cudaMalloc under aten::empty in process_batch_result() (scheduler.py:2376)",
		gpu.Allocation, host.Allocating, "cudaMalloc under aten::empty in process_batch_result() (scheduler.py:2376)"},
	{"module load", torch.Stall{Cause: torch.StallModule, Length: 40 * time.Millisecond},
		"is cuModuleLoadData under _init_handles() (compiler.py:414) in process_batch_result() (scheduler.py:2376)",
		gpu.Modules, host.LoadingModule, "cuModuleLoadData under _init_handles() (compiler.py:414) in process_batch_result() (scheduler.py:2376)"},
	{"garbage collection", torch.Stall{Cause: torch.StallCollect, Length: 40 * time.Millisecond},
		"is garbage collection in process_batch_result() (scheduler.py:2376)",
		gpu.BetweenSteps, host.Collecting, "Python GC in process_batch_result() (scheduler.py:2376)"},
	{"interpreter lock", torch.Stall{Cause: torch.StallLock, Length: 12 * time.Millisecond, Every: 2},
		"is Python in process_batch_result() (scheduler.py:2376) while another thread is in _decode() (tokenization_utils_fast.py:640)",
		gpu.BetweenSteps, host.OtherThread, "process_batch_result() (scheduler.py:2376) while another thread is in _decode() (tokenization_utils_fast.py:640)"},
	{"slow tokenizer", torch.Stall{Cause: torch.StallTokenizer, Length: 12 * time.Millisecond, Every: 2},
		"is waiting for another thread: result() (_base.py:428) in process_batch_result() (scheduler.py:2376) while another thread is in _batch_encode_plus() (tokenization_utils_fast.py:540)",
		gpu.BetweenSteps, host.Locked, "result() (_base.py:428) in process_batch_result() (scheduler.py:2376) while another thread is in _batch_encode_plus() (tokenization_utils_fast.py:540)"},
}

// measured returns the gaps of a set, and the measures of its devices.
func measured(set *profile.Set, opt gaps.Options) (*gaps.Gaps, *gpu.GPUs) {
	collector := gaps.Collect(set)
	gpus := gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	return collector.Measure(opt), gpus
}

// misses returns how the report on a stall is wrong; "" if it is right.
func misses(set *profile.Set, i int) string {
	want := &planted[i]
	g, gpus := measured(set, gaps.Options{})
	found, check := g.Findings(gpus.Length())
	if len(found) == 1 {
		if missing := unfound(g, &found[0]); missing != "" {
			return missing
		}
	}
	switch longest := &g.Longest[0]; {
	case len(found) != 1 || !strings.Contains(found[0].Text, want.says):
		return fmt.Sprintf("found %+v, %v", found, check)
	case longest.Reason != want.idle || longest.Activity != want.did || longest.Where() != want.where:
		return fmt.Sprintf("the longest gap is %s, %s: %s", gpu.ReasonWords[longest.Reason], longest.Activity, longest.Where())
	case longest.Gap.Length() < idleIn(&want.stall)*8/10:
		return fmt.Sprintf("the longest gap takes %d ns", longest.Gap.Length())
	}
	return ""
}

// unfound returns the evidence of a finding that is not in exactly one row of the tables.
func unfound(g *gaps.Gaps, f *finding.Finding) string {
	for _, e := range f.Evidence {
		for _, t := range g.Reports() {
			if t.Name() != e.Table {
				continue
			}
			column := func(key string) int {
				return slices.IndexFunc(t.Columns, func(c table.Column) bool { return c.Key() == key })
			}
			rows := 0
			for row := range t.Len() {
				other := slices.ContainsFunc(e.Row, func(k finding.Key) bool { return t.Cell(row, column(k.Column)).Text != k.Text })
				if !other && float64(t.Cell(row, column(e.Column)).N) == e.Value {
					rows++
				}
			}
			if rows != 1 {
				return fmt.Sprintf("%q is in %d rows of %s", e.Text, rows, e.Table)
			}
		}
	}
	if f.Evidence[0].Table == "" {
		return "no table has the evidence"
	}
	return ""
}

// The causes that keep hosts busy in PyTorch traces are named in the finding and in
// the row of the longest gap.
func TestRatePlantedCauses(t *testing.T) {
	for i := range planted {
		t.Run(planted[i].name, func(t *testing.T) {
			rateNamed(t, "host waits named: "+planted[i].name, testset.Seeds(t), func(seed uint64) string {
				return misses(testset.Stalled(t, seed, planted[i].stall), i)
			})
		})
	}
}

// rateNamed measures in how many simulated runs a report names what is planted.
// missed returns what is wrong with the report of a run; "" if it is right.
func rateNamed(t *testing.T, what string, seeds []uint64, missed func(seed uint64) string) {
	t.Helper()
	right := 0
	for _, seed := range seeds {
		if text := missed(seed); text == "" {
			right++
		} else {
			t.Logf("seed %d: %s", seed, text)
		}
	}
	testset.Rate(t, what, right, len(seeds), 95)
}

// Without stalls, nothing is found.
func TestNoCauseStandsOut(t *testing.T) {
	g, gpus := measured(testset.Stalled(t, 5, torch.Stall{}), gaps.Options{})
	if found, _ := g.Findings(gpus.Length()); len(found) > 0 {
		t.Errorf("found %s", found[0].Text)
	}
}

// Late for a window, however often it is called, agrees with what
// [gaps.Options.Each] yields for the gaps that begin in it.
func TestLateIsOfItsWindows(t *testing.T) {
	set := testset.Stalled(t, 5, planted[0].stall)
	collector := gaps.Collect(set)
	gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	type part struct {
		at    trace.Time
		where string
		ns    int64
	}
	var mu sync.Mutex
	parts := make([][]part, len(set.Ranks))
	collector.Measure(gaps.Options{Keep: true, Each: func(rank int32, c *gaps.Cause, at trace.Time, ns int64) {
		if c.Reason == gpu.Meeting || c.Reason == gpu.ProfilerStart {
			return
		}
		where := c.Where()
		if c.Activity == host.OnDevice {
			where = ""
		}
		mu.Lock()
		defer mu.Unlock()
		parts[rank] = append(parts[rank], part{at, where, ns})
	}})
	first, last := parts[0][0].at, parts[0][0].at
	for _, p := range parts[0] {
		first, last = min(first, p.at), max(last, p.at)
	}
	middle := first + (last-first)/2
	windows := []gaps.Window{{Rank: 0, To: middle}, {Rank: 0, From: middle}, {Rank: 0, From: first + (last-first)/3, To: middle}, {Rank: 0}}
	for range 2 {
		for i, late := range collector.Late(windows) {
			want, w := map[string]int64{}, windows[i]
			for _, p := range parts[w.Rank] {
				if (w.From == 0 || p.at >= w.From) && (w.To == 0 || p.at < w.To) {
					want[p.where] += p.ns
				}
			}
			got := map[string]int64{}
			for _, c := range late.Causes {
				got[c.Where] += c.Time
			}
			if len(got) == 0 || !maps.Equal(got, want) {
				t.Errorf("window %d: %v, want %v", i, got, want)
			}
		}
	}
}

// idleIn returns how long a GPU is idle in a stall, ns: while .item() waits, it is busy.
func idleIn(s *torch.Stall) int64 {
	if s.Cause == torch.StallItem {
		return int64(s.Length) / 2
	}
	return int64(s.Length)
}
