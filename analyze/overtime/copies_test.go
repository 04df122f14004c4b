package overtime

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A copying runs 200 rounds of a program that copies pages of two sizes to a device, and then runs a kernel.
type copying struct {
	factor func(round int) float64 // by which copies take longer
	bytes  func(round int) int64   // of the smaller page
	hidden bool                    // a kernel runs at the same time
	says   string                  // part of the text; "" is no finding
}

const smallPage, largePage = 4 << 20, 16 << 20

// record returns the rows, the time since which copies take longer, and the share of the time that this costs.
func (c *copying) record(seed uint64) (set *profile.Set, since trace.Time, lost float64) {
	syms, r, all := trace.NewSymbols(), rand.New(rand.NewPCG(seed, 9)), 0.0
	out, at := &testset.RowStream{}, int64(1_000_000)
	for round := range 200 {
		if round == 120 {
			since = trace.Time(at)
		}
		begin := at
		for _, bytes := range []int64{c.bytes(round), largePage} {
			took := int64(float64(bytes) / 25 * c.factor(round) * (0.95 + 0.1*r.Float64())) // 25 GB/s
			lost += float64(took) * (1 - 1/c.factor(round))
			out.CopyRows = append(out.CopyRows, profile.Copy{Event: profile.Event{Start: trace.Time(at), End: trace.Time(at + took), Name: syms.Intern("[CUDA memcpy Host-to-Device]")}, Bytes: bytes})
			at += took + 1000
		}
		if !c.hidden {
			begin = at
		}
		at += 500_000
		out.KernelRows = append(out.KernelRows, profile.Kernel{Event: profile.Event{Start: trace.Time(begin), End: trace.Time(at), Name: syms.Intern("gemm")}, Stream: 1})
		at += 1000
	}
	all = float64(at - 1_000_000)
	return testset.SetOf(syms, []string{"rank 0"}, out), since, lost / all
}

var copyings = map[string]copying{
	"nothing":             {factor: func(int) float64 { return 1 }},
	"half the rate":       {factor: func(round int) float64 { return float64(1 + round/120) }, says: "copies take 2"},
	"faster":              {factor: func(round int) float64 { return 2 - float64(round/120) }},
	"hidden":              {factor: func(round int) float64 { return float64(1 + round/120) }, hidden: true},
	"more bytes":          {factor: func(int) float64 { return 1 }, bytes: func(round int) int64 { return smallPage * int64(1+9*(round/120)) }},
	"sizes that differ":   {factor: func(int) float64 { return 1 }, bytes: func(round int) int64 { return smallPage + int64(round)<<16 }},
	"slow for a moment":   {factor: func(round int) float64 { return 1 + float64(round%200/100*(1-round%200/110)) }},
	"slow every 10 times": {factor: func(round int) float64 { return 1 + float64(max(0, round%10-8)) }},
}

// If copies of equal size take longer, the link or the memory at its ends is slower. The finding says since
// when, and costs the time that nothing hides.
func TestRateOfSlowCopies(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	for _, name := range slices.Sorted(maps.Keys(copyings)) {
		c, right := copyings[name], 0
		if c.bytes == nil {
			c.bytes = func(int) int64 { return smallPage }
		}
		for _, seed := range seeds {
			set, since, lost := c.record(seed)
			found, _ := timelineOf(set, Options{}).Findings()
			found = slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Subkind != CopySubkind })
			switch {
			case len(found) == 0 && c.says == "":
				right++
			case len(found) == 1 && c.says != "" && strings.Contains(found[0].Text, c.says):
				right++
				f := &found[0]
				if math.Abs(f.Cost/lost-1) > 0.1 || math.Abs(float64(f.Since-since)) > 10_000_000 {
					t.Errorf("%s: since %d, not %d; it costs %.3f, not %.3f", name, f.Since, since, f.Cost, lost)
				}
				if !strings.Contains(f.Text, "[CUDA memcpy Host-to-Device] of 16.8 MB ran at 2") || !strings.Contains(f.Text, " GB/s before, and at 12") {
					t.Error(f.Text)
				}
			default:
				t.Logf("%s, seed %d: %+v", name, seed, found)
			}
		}
		testset.Rate(t, "copies that become slower: "+name, right, len(seeds), 95)
	}
}
