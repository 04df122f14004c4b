package overtime

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A shortCapture is six steps of 24 layers. Each layer launches a norm, a GEMM of one size, an activation, and a
// GEMM of another size with the same kernel. From the fourth step on, something may take longer.
type shortCapture struct {
	factor func(kernel string, step int) float64
	// says is part of the text, and lost the share of the time that is lost; "" is no finding.
	says string
	rank string // the affected rank; "" is all
}

type shortKernel struct {
	name string
	ns   float64
}

var shortLayer = []shortKernel{{"rms_norm", 20_000}, {"gemm_128x64", 60_000}, {"silu_and_mul", 40_000}, {"gemm_128x64", 150_000}, {"flash_fwd_kernel", 30_000}}

func (s *shortCapture) record(seed uint64) (set *profile.Set, since trace.Time, lost float64) {
	syms, r, all := trace.NewSymbols(), rand.New(rand.NewPCG(seed, 5)), 0.0
	ranks, out := []string{"TP0", "TP1"}, &testset.RowStream{}
	for rank := range ranks {
		at := int64(1_000_000)
		for step := range 6 {
			slower := func(step int) bool {
				return slices.ContainsFunc(shortLayer, func(k shortKernel) bool { return s.factor(k.name, step) > 1 })
			}
			if slower(step) && !(step > 0 && slower(step-1)) {
				since = max(since, trace.Time(at))
			}
			for range 24 {
				for _, k := range shortLayer {
					f := 1.0
					if s.rank == "" || s.rank == ranks[rank] {
						f = s.factor(k.name, step)
					}
					took := int64(k.ns * f * (0.98 + 0.04*r.Float64()))
					out.KernelRows = append(out.KernelRows, profile.Kernel{Event: profile.Event{Rank: int32(rank), Start: trace.Time(at), End: trace.Time(at + took), Name: syms.Intern(k.name)}})
					at += took + 2_000
					all, lost = all+float64(took)+2_000, lost+float64(took)*(1-1/f)
				}
			}
		}
	}
	return testset.SetOf(syms, ranks, out), since, lost / all
}

// from returns a factor for the kernels with a name, from the fourth step on; "" is all kernels.
func from(name string, factor float64) func(string, int) float64 {
	return func(kernel string, step int) float64 {
		if step >= 3 && strings.HasPrefix(kernel, name) {
			return factor
		}
		return 1
	}
}

var shortCaptures = map[string]shortCapture{
	"nothing":           {factor: from("", 1)},
	"a little":          {factor: from("", 1.05)},
	"one kernel":        {from("gemm", 1.4), ": most of all `gemm_128x64`, while others take as long as before", ""},
	"all clocks":        {from("", 1.5), "times as long on TP0, TP1 since 00:00:00.023: nearly all of them, as if the GPU clock were lower, or each had more to do", ""},
	"the clock":         {from("", 1.5), "times as long on TP1 since 00:00:00.023: nearly all of them, as if the GPU clock were lower, or each had more to do", "TP1"},
	"faster":            {factor: from("", 0.7)},
	"the first is slow": {factor: func(_ string, step int) float64 { return []float64{1.8, 1, 1, 1, 1, 1}[step] }},
	"one step in two":   {factor: func(_ string, step int) float64 { return 1 + 0.4*float64(step%2) }},
	"longer contexts":   {factor: from("flash", 4)},
	"back to what it was": {func(_ string, step int) float64 { return []float64{1, 1, 1.5, 1.5, 1, 1}[step] },
		"times as long on TP0, TP1 from 00:00:00.015 to 00:00:00.03", ""},
}

// If kernels take longer on TP0, that is no evidence about other kernels on TP1 that take longer by chance.
func TestPaceOfOtherKernels(t *testing.T) {
	c := shortCapture{factor: from("gemm", 1.5), rank: "TP0"}
	set, since, _ := c.record(3)
	tiny := set.Syms.Intern("tiny")
	for i := range set.Streams[0].(*testset.RowStream).KernelRows {
		k := &set.Streams[0].(*testset.RowStream).KernelRows[i]
		if k.Rank == 0 || i%20 != 0 {
			continue
		}
		k.Name = tiny
		if k.End = k.Start + 400; k.Start >= since {
			k.End = k.Start + 800
		}
	}
	const want = "on TP0 since 00:00:00.023: most of all `gemm_128x64`"
	if found, _ := timelineOf(set, Options{}).Findings(); len(found) != 1 || !strings.Contains(found[0].Text, want) {
		t.Errorf("%+v, want %s", found, want)
	}
}

// In a few unnamed steps, kernels that take longer are found, with the time since when and the cost.
func TestRateOfPaces(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	for _, name := range slices.Sorted(maps.Keys(shortCaptures)) {
		c, right := shortCaptures[name], 0
		for _, seed := range seeds {
			set, since, lost := c.record(seed)
			found, _ := timelineOf(set, Options{}).Findings()
			switch {
			case len(found) == 0 && c.says == "":
				right++
			case len(found) == 1 && c.says != "" && strings.Contains(found[0].Text, c.says):
				right++
				if f := &found[0]; math.Abs(f.Cost/lost-1) > 0.15 || math.Abs(float64(f.Since-since)) > 3_000_000 {
					t.Errorf("%s: since %d, not %d; it costs %.3f, not %.3f", name, f.Since, since, f.Cost, lost)
				}
			default:
				t.Logf("%s, seed %d: %+v", name, seed, found)
			}
		}
		testset.Rate(t, "kernels of few steps: "+name, right, len(seeds), 95)
	}
}

// A server that first prefills and then decodes launches different kernels. That is no change.
func TestOtherKernels(t *testing.T) {
	c := shortCapture{factor: from("", 1)}
	set, since, _ := c.record(1)
	rows, r := set.Streams[0].(*testset.RowStream).KernelRows, rand.New(rand.NewPCG(1, 1))
	for i := range rows {
		if k := &rows[i]; k.Start >= since {
			if k.Name = set.Syms.Intern(set.Syms.Name(k.Name) + "_splitk"); r.IntN(5) == 0 {
				k.Name = set.Syms.Intern("gemm_128x64")
			}
		}
	}
	if found, _ := timelineOf(set, Options{}).Findings(); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// A change on one rank is looked for on the other at the same time, where a search alone would miss it in the noise.
func TestPaceOnAllRanks(t *testing.T) {
	for factor, where := range map[float64]string{1.5: "on TP0, TP1 since 00:00:00.023: nearly all of them, as if the GPU clock were lower", 1: "on TP0 since 00:00:00.023: nearly all of them, as if the GPU clock were lower"} {
		c := shortCapture{factor: from("", 1.5), rank: "TP0"}
		set, since, _ := c.record(3)
		r, shift := rand.New(rand.NewPCG(3, 3)), trace.Time(0)
		for i := range set.Streams[0].(*testset.RowStream).KernelRows {
			k := &set.Streams[0].(*testset.RowStream).KernelRows[i]
			if k.Rank == 0 {
				continue
			}
			took := float64(k.End-k.Start) * (0.2 + 1.6*r.Float64()) * (0.4 + 1.2*float64(i/24%2)) // every other layer takes longer
			if k.Start >= since {
				took *= factor
			}
			k.Start += shift
			shift += trace.Time(took) - (k.End + shift - k.Start)
			k.End = k.Start + trace.Time(took)
		}
		found, _ := timelineOf(set, Options{}).Findings()
		if len(found) != 1 || !strings.Contains(found[0].Text, where) {
			t.Errorf("%v times as long on TP1, too: %+v, want %s", factor, found, where)
		}
	}
}

// If all kernels take a tenth longer, some names seem slightly less affected by chance. They are not reported as unaffected.
func TestPaceOfAllALittle(t *testing.T) {
	factors := map[string]float64{"rms_norm": 1.08, "gemm_128x64": 1.12, "silu_and_mul": 1.08, "flash_fwd_kernel": 1.1}
	c := shortCapture{factor: func(kernel string, step int) float64 { return from(kernel, factors[kernel])(kernel, step) }}
	set, _, _ := c.record(2)
	const want = "nearly all of them, as if the GPU clock were lower"
	if found, _ := timelineOf(set, Options{}).Findings(); len(found) != 1 || !strings.Contains(found[0].Text, want) {
		t.Errorf("%+v, want %s", found, want)
	}
}

// The duration of attention depends on the context, which peer ranks share: it is a change only if peers do not
// have it. A few kernels are enough if all of them take longer than any before.
func TestPaceBesidePeers(t *testing.T) {
	attention := from("flash", 2)
	for rank, want := range map[string]string{"TP1": "take 2.00 times as long on TP1 since 00:00:00.0", "": ""} {
		c := shortCapture{factor: attention, rank: rank}
		set, since, lost := c.record(4)
		found, _ := timelineOf(set, Options{}).Findings()
		if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || !strings.HasPrefix(strings.Replace(found[0].Text, " 2 times", " 2.00 times", 1), "kernels "+want) ||
			!strings.Contains(found[0].Text, "`flash_fwd_kernel`, while others, and these on its peers, take as long as before") || math.Abs(float64(found[0].Since-since)) > 1_000_000 || math.Abs(found[0].Cost/lost-1) > 0.05) {
			t.Errorf("on %q: %+v, want %s at %d", rank, found, want, since)
		}
	}
}

// Kernels that gradually become up to twice as long are reported as gradual, at the cost of a third of the time; attention, too.
func TestPaceBitByBit(t *testing.T) {
	c := shortCapture{factor: from("", 1)}
	set, _, _ := c.record(6)
	rows, at := set.Streams[0].(*testset.RowStream).KernelRows, trace.Time(0)
	for i := range rows {
		if i > 0 && rows[i].Rank != rows[i-1].Rank {
			at = 0
		}
		took := trace.Time(float64(rows[i].End-rows[i].Start) * (1 + 2*float64(i%(len(rows)/2))/float64(len(rows))))
		rows[i].Start, rows[i].End = at, at+took
		at += took + 2_000
	}
	found, _ := timelineOf(set, Options{}).Findings()
	const says = "kernels take longer gradually, up to "
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, says) || !strings.Contains(found[0].Text, "on TP0, TP1 since 00:00:00.00") || math.Abs(found[0].Metric.After-2) > 0.1 || math.Abs(found[0].Cost-0.326) > 0.03 {
		t.Errorf("%+v, want %s2 times as long, 33 %%", found, says)
	}
}

// A host that launches the same kernels later from some time on shows in the gaps before them; a few pauses do
// not. The 72 layers before take 400 us each. Of 129.6 ms on both ranks, 360 gaps lose 40 us each.
func TestGapPaces(t *testing.T) {
	for name, c := range map[string]struct {
		gap  func(i, n int) trace.Time // before kernel i of n
		want string
	}{
		"slower":      {func(i, n int) trace.Time { return 20_000 + 40_000*trace.Time(2*i/n) }, "gaps in front of the same kernels take 3 times as long on TP1 since 00:00:00.028: the host"},
		"pauses":      {func(i, n int) trace.Time { return 20_000 + 3_000_000*trace.Time(2*i/n)*trace.Time(1-min(1, i%100)) }, ""},
		"as slow":     {func(int, int) trace.Time { return 60_000 }, ""},
		"hardly idle": {func(i, n int) trace.Time { return 500 + 1000*trace.Time(2*i/n) }, ""},
	} {
		shown := shortCapture{factor: from("", 1)}
		set, _, _ := shown.record(7)
		rows, at := set.Streams[0].(*testset.RowStream).KernelRows, trace.Time(0)
		for i := range rows {
			if n := len(rows) / 2; i == n {
				at = 0
			} else if i > n {
				at += c.gap(i-n, n)
			} else if i > 0 {
				at += c.gap(0, n)
			}
			took := rows[i].End - rows[i].Start
			rows[i].Start, rows[i].End = at, at+took
			at += took
		}
		found, _ := timelineOf(set, Options{}).Findings()
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasPrefix(strings.Replace(found[0].Text, "3.00", "3", 1), c.want) || math.Abs(found[0].Cost-0.111) > 0.005) {
			t.Errorf("%s: %+v, want %s", name, found, c.want)
		}
	}
}

// Kernels that take longer have more to do if their launches have more blocks since then, and not if they have as many.
func TestPaceOfGrids(t *testing.T) {
	for blocks, want := range map[int64]string{
		150: "nearly all of them, launched with 1.50 times as many blocks (median): they have more to do",
		100: "nearly all of them, launched with as many blocks, as if the GPU clock were lower",
	} {
		c := shortCapture{factor: from("", 1.5), rank: "TP0"}
		set, since, _ := c.record(3)
		for _, s := range set.Streams {
			for i := range s.(*testset.RowStream).KernelRows {
				k := &s.(*testset.RowStream).KernelRows[i]
				if k.Grid = profile.GridOf(100, 256); k.Rank == 0 && k.Start >= since {
					k.Grid = profile.GridOf(blocks, 256)
				}
			}
		}
		if found, _ := timelineOf(set, Options{}).Findings(); len(found) != 1 || !strings.Contains(found[0].Text, want) {
			t.Errorf("%d blocks: %+v, want %s", blocks, found, want)
		}
	}
}

// Kernels that are launched several times in a row from some time on cost what these launches take beyond the one before:
// of 24 x 3 layers of 300 us each, which the others launch once.
func TestRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		of, want string
		n, each  float64
	}{
		"all twice":        {"", "are launched 2 times as often in a row on TP0, TP1 since 00:00:00.023: nearly all of them, and each takes as long as before", 2, 1},
		"one of them":      {"silu", "are launched 3 times as often in a row on TP0, TP1 since 00:00:00.023: most of all `silu_and_mul`, while others are launched as often as before, and each takes as long as before", 3, 1},
		"in two parts":     {"gemm", "are launched 2 times as often in a row on TP0, TP1 since 00:00:00.023: most of all `gemm_128x64`, while others are launched as often as before, and each takes 0.800 times as long", 2, 0.8},
		"the same work":    {"", "", 2, 0.5},
		"as often":         {"", "", 1, 1},
		"longer, not more": {"gemm", "", 1, 1.05},
	} {
		plain := shortCapture{factor: from("", 1)}
		set, _, _ := plain.record(9)
		stream, all, more := set.Streams[0].(*testset.RowStream), 0.0, 0.0
		rows := stream.KernelRows
		at := rows[0].Start
		stream.KernelRows = nil
		for i, k := range rows {
			if i > 0 && k.Rank != rows[i-1].Rank {
				at = rows[0].Start
			}
			n, took := 1.0, float64(k.End-k.Start)
			if i%(len(rows)/2) >= len(rows)/4 && strings.HasPrefix(set.Syms.Name(k.Name), c.of) {
				n, took, more = c.n, took*c.each, more+took*(c.n*c.each-1)
			}
			for range int(n) {
				k.Start, k.End = at, at+trace.Time(took)
				at, all = k.End+2_000, all+took+2_000
				stream.KernelRows = append(stream.KernelRows, k)
			}
		}
		found, _ := timelineOf(set, Options{}).Findings()
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasSuffix(strings.ReplaceAll(found[0].Text, ".00 times", " times"), c.want) || math.Abs(found[0].Cost/(more/all)-1) > 0.05) {
			t.Errorf("%s: %+v, want %s at %.3f", name, found, c.want, more/all)
		}
	}
}

// Most devices say whether all became slower at once or gradually, even if another is more certain of itself.
func TestClearestOf(t *testing.T) {
	jump, slow, slower := &Change{P: 1e-9}, &Change{P: 1e-3, gradual: true}, &Change{P: 1e-4, gradual: true}
	for want, of := range map[*Change][]*Change{slower: {jump, slow, nil, slower}, jump: {slow, jump, nil, {P: 1e-8}}, nil: {nil}} {
		if got := clearestOf(of); got != want {
			t.Errorf("of %v: %v, want %v", of, got, want)
		}
	}
}

// Where no device ran, operators that take longer in the same place are found, with what the slowdown costs; those that always
// take that long are not.
func TestSlowerOperators(t *testing.T) {
	for _, slow := range []bool{false, true} {
		syms, at, lost := trace.NewSymbols(), trace.Time(0), trace.Time(0)
		mm, relu, s := syms.Intern("aten::mm"), syms.Intern("aten::relu"), &testset.RowStream{}
		var since trace.Time
		call := func(name trace.Sym, took trace.Time) {
			s.FrameRows = append(s.FrameRows, profile.Frame{Event: profile.Event{Start: at, End: at + took, Name: name}, TID: 1})
			at += took
		}
		for i := range 200 {
			took := trace.Time(100_000 + i*7919%9000)
			if slow && i >= 120 {
				since, lost, took = cmp.Or(since, at), lost+took, 2*took
			}
			call(mm, took)
			call(relu, trace.Time(100_000+i*104729%9000))
		}
		found := SlowerOperators(testset.SetOf(syms, []string{"rank 0"}, s), profilewalk.Options{})
		switch {
		case !slow && len(found) > 0:
			t.Errorf("found %+v", found)
		case !slow:
		case len(found) != 1 || !strings.HasPrefix(found[0].Text, "operators take 1.99 times as long on rank 0 since 00:00:00.0") || !strings.Contains(found[0].Text, "`aten::mm`, while others take as long as before"):
			t.Errorf("found %+v", found)
		case math.Abs(float64(found[0].Since-since)) > 1_000_000 || math.Abs(found[0].Cost*float64(at)/float64(lost)-1) > 0.05:
			t.Errorf("at %d, want %d; cost %v, want %v", found[0].Since, since, found[0].Cost, float64(lost)/float64(at))
		}
	}
}

// A whole CUDA graph that holds collectives takes longer on ranks that wait for one that launches it late. That is no slower clock; but if it
// takes longer on the late rank, too, it is slower.
func TestWholeGraphs(t *testing.T) {
	for _, slower := range []bool{false, true} {
		syms, at := trace.NewSymbols(), trace.Time(0)
		name, s := syms.Intern("CUDA graph 7"), &testset.RowStream{}
		for i := range 120 {
			took, late := trace.Time(1_000_000+i*7919%30000), trace.Time(0)
			if i >= 60 && slower {
				took *= 2
			} else if i >= 60 {
				late = 1_500_000
			}
			for rank, start := range []trace.Time{at, at + late} {
				s.KernelRows = append(s.KernelRows, profile.Kernel{Event: profile.Event{Rank: int32(rank), Start: start, End: at + late + took, Name: name}, Graph: true})
			}
			at += late + took + 20_000
		}
		slices.SortStableFunc(s.KernelRows, func(a, b profile.Kernel) int { return int(a.Rank - b.Rank) })
		found, _ := timelineOf(testset.SetOf(syms, []string{"TP0", "TP1"}, s), Options{}).Findings()
		found = slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Subkind != PaceSubkind })
		if slower && (len(found) != 1 || math.Abs(found[0].Metric.After-2) > 0.05 || !strings.Contains(found[0].Text, "on TP0, TP1 since 00:00:00.06") ||
			!strings.Contains(found[0].Text, "or what these graphs communicate takes longer") || !strings.HasPrefix(found[0].Evidence[1].Text, "CUDA graph 7: ")) || !slower && len(found) > 0 {
			t.Errorf("slower %v: %+v", slower, found)
		}
	}
}
