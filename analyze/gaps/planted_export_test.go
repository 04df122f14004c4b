package gaps_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testexport"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// exported are stalls as Nsight Systems records them, without Python frames, and
// their names in the finding and in the row of the longest gap.
var exported = []struct {
	name  string
	stall torch.Stall
	says  string // in the text of the finding; "" is no finding, since the host may be waiting for requests, or step sizes share the time
	idle  gpu.Reason
	did   host.Activity
	where string // "" is the range of any step
}{
	{"sync", torch.Stall{Cause: torch.StallItem, Length: 18 * time.Millisecond, Every: 2}, "", gpu.AfterSync, host.InRange, ""},
	{"pageable copy", torch.Stall{Cause: torch.StallPageable, Length: 8 * time.Millisecond, Every: 2},
		"is a copy of pageable memory: cudaMemcpyAsync in scheduler.process_batch_result",
		gpu.BetweenSteps, host.CopyingPageable, "cudaMemcpyAsync in scheduler.process_batch_result"},
	{"allocator", torch.Stall{Cause: torch.StallMalloc, Length: 8 * time.Millisecond, Every: 2},
		"is cudaMalloc in scheduler.process_batch_result", gpu.Allocation, host.Allocating, "cudaMalloc in scheduler.process_batch_result"},
	{"module load", torch.Stall{Cause: torch.StallModule, Length: 40 * time.Millisecond},
		"is cuModuleLoadData in scheduler.process_batch_result", gpu.Modules, host.LoadingModule, "cuModuleLoadData in scheduler.process_batch_result"},
	{"interpreter lock", torch.Stall{Cause: torch.StallLock, Length: 12 * time.Millisecond, Every: 2}, "",
		gpu.BetweenSteps, host.Locked, "pthread_cond_timedwait in scheduler.process_batch_result"},
	{"slow tokenizer", torch.Stall{Cause: torch.StallTokenizer, Length: 12 * time.Millisecond, Every: 2}, "",
		gpu.BetweenSteps, host.Locked, "pthread_cond_wait in scheduler.process_batch_result"},
}

// missesInExport returns how the report on a stall in an export is wrong; "" if it is right.
func missesInExport(set *profile.Set, i int) string {
	want := &exported[i]
	g, gpus := measured(set, gaps.Options{})
	if want.says != "" {
		if found, check := g.Findings(gpus.Length()); len(found) != 1 || !strings.Contains(found[0].Text, want.says) {
			return fmt.Sprintf("found %+v, %v", found, check)
		}
	}
	longest := &g.Longest[0]
	isThere := longest.Where() == want.where || want.where == "" && strings.HasSuffix(longest.Where(), " step")
	if longest.Reason != want.idle || longest.Activity != want.did || !isThere {
		return fmt.Sprintf("the longest gap is %s, %s: %s", gpu.ReasonWords[longest.Reason], longest.Activity, longest.Where())
	}
	if length := longest.Gap.Length(); length < idleIn(&want.stall)*8/10 {
		return fmt.Sprintf("the longest gap takes %d ns", length)
	}
	if want.idle != gpu.AfterSync {
		return ""
	}
	drained, bySync := int64(0), int64(0)
	for k := range g.Drained {
		c := &g.Drained[k]
		if drained += c.Time; c.Call == "cudaStreamSynchronize" {
			bySync += c.Time
		}
	}
	if bySync < g.Late/2 || bySync < drained*9/10 {
		return fmt.Sprintf("%d of %d ns follow cudaStreamSynchronize, of %d in all", bySync, drained, g.Late)
	}
	return ""
}

// The causes that keep hosts busy are named in exports of Nsight Systems, as far as these show them.
func TestRatePlantedCausesInExports(t *testing.T) {
	for i := range exported {
		t.Run(exported[i].name, func(t *testing.T) {
			rateNamed(t, "host waits named in exports: "+exported[i].name, testset.FirstSeeds(t, 2), func(seed uint64) string {
				return missesInExport(testexport.Stalled(t, seed, exported[i].stall), i)
			})
		})
	}
}
