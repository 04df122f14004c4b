package gpuloss

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// callEvidence names the calls with the most time among those that cause a reason.
func callEvidence(calls []gpu.CallTime, reason gpu.Reason) finding.Evidence {
	i := slices.IndexFunc(calls, func(c gpu.CallTime) bool { return c.Reason == reason })
	if i < 0 {
		return finding.Evidence{}
	}
	c := &calls[i]
	return finding.Sentence("%s: %s, %s in total, the longest %s", c.Name, words.Counted(int(c.N), "call"), words.Nearly(c.Time), words.Nearly(c.Max))
}

// longestGap describes the longest gap of t, with its reason if that is not lead.
func longestGap(g *gpu.GPUs, t *gpuTime, lead gpu.Reason) finding.Evidence {
	longest, why := t.longest[lead], ""
	for reason, gap := range t.longest {
		if r := gpu.Reason(reason); lead != gpu.BetweenSteps && r != gpu.BetweenSteps && !r.Cold() && gap.gap.Length() > longest.gap.Length() {
			longest, why = gap, ": "+gpu.ReasonWords[r]
		}
	}
	if longest.of == nil {
		return finding.Evidence{}
	}
	text := "longest gap " + words.Nearly(longest.gap.Length())
	if longest.gap.From > gpu.Absolute {
		text += " at " + words.At(longest.gap.From, words.ClockLayout)
	}
	if len(g.GPUs) > 1 {
		text += " on " + g.Label(longest.of)
	}
	return finding.Sentence("%s", text+why)
}

// launchDelay says how long after their launch kernels start: a host that is ahead of the device has a queue.
func launchDelay(g *gpu.GPUs) finding.Evidence {
	device := &g.GPUs[0]
	if device.Delay.N == 0 {
		return finding.Evidence{}
	}
	return finding.Sentence("%s starts kernels a median of %s after their launch; a host that runs ahead builds a queue", g.Label(device), words.Nearly(device.Delay.P50))
}

// devices names the devices: "the GPU", "the 8 GPUs".
func devices(g *gpu.GPUs) string {
	if len(g.GPUs) == 1 {
		return "the GPU"
	}
	return fmt.Sprintf("the %d GPUs", len(g.GPUs))
}

// GPUsAre begins a sentence: "the 8 GPUs are".
func GPUsAre(g *gpu.GPUs) string { return devices(g) + " " + words.IsOrAre(len(g.GPUs)) }

// GPUsSpend begins a sentence: "the 8 GPUs spend".
func GPUsSpend(g *gpu.GPUs) string { return do(g, "spend") }

// GPUsWait begins a sentence: "the 8 GPUs wait".
func GPUsWait(g *gpu.GPUs) string { return do(g, "wait") }

func do(g *gpu.GPUs, verb string) string {
	if len(g.GPUs) == 1 {
		verb += "s"
	}
	return devices(g) + " " + verb
}

// lone returns the device that alone among several spends share of its time or more on something; nil
// if all do, or more than one.
func lone(g *gpu.GPUs, of func(*gpu.GPU) int64, share float64) *gpu.GPU {
	var found []*gpu.GPU
	for i := range g.GPUs {
		if device := &g.GPUs[i]; distribution.Fraction(of(device), device.Length()) >= share {
			found = append(found, device)
		}
	}
	if len(found) != 1 || len(g.GPUs) == 1 {
		return nil
	}
	return found[0]
}

// outlier names, in brackets, the device, or the two devices, that spend a share of their time on something that is
// twice as large as any other device's, and a tenth of the time larger; "" if there are none.
func outlier(g *gpu.GPUs, of func(*gpu.GPU) int64) string {
	const times, most = 2, 2
	part := func(d *gpu.GPU) float64 { return distribution.Fraction(of(d), d.Length()) }
	list := make([]*gpu.GPU, len(g.GPUs))
	for i := range g.GPUs {
		list[i] = &g.GPUs[i]
	}
	slices.SortStableFunc(list, func(a, b *gpu.GPU) int { return cmp.Compare(part(b), part(a)) })
	var named []string
	for n := 1; n <= min(most, len(list)-1); n++ {
		last, next := part(list[n-1]), part(list[n])
		named = append(named, fmt.Sprintf("%s %.0f %%", g.Label(list[n-1]), 100*last))
		if last < times*next || last-next < muchLate {
			continue
		}
		others := "the other"
		if len(list) > n+1 {
			others = "no other more than"
		}
		return fmt.Sprintf(" (%s, %s %.0f %%)", strings.Join(named, ", "), others, 100*next)
	}
	return ""
}

// spread says on which device a share of the time is smallest, and on which largest; it returns nothing
// for one device. column is the column of that time, in ns, in the table of devices.
func spread(g *gpu.GPUs, column string, of func(*gpu.GPU) int64) finding.Evidence {
	if len(g.GPUs) < 2 {
		return finding.Evidence{}
	}
	part := func(g *gpu.GPU) float64 { return distribution.Fraction(of(g), g.Length()) }
	least, most := &g.GPUs[0], &g.GPUs[0]
	for i := range g.GPUs {
		if device := &g.GPUs[i]; part(device) < part(least) {
			least = device
		} else if part(device) > part(most) {
			most = device
		}
	}
	text := fmt.Sprintf("from %.0f %% on %s to %.0f %% on %s", 100*part(least), g.Label(least), 100*part(most), g.Label(most))
	if math.Round(100*part(least)) == math.Round(100*part(most)) {
		text = fmt.Sprintf("%.0f %% on each of them", 100*part(most))
	}
	return finding.Sentence("%s", text).
		In("gpu", finding.Row("rank", g.Label(most)), column, float64(of(most)))
}
