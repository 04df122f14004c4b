package gpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// callEvidence tells which calls a reason is about.
func (g *GPUs) callEvidence(reason Reason) finding.Evidence {
	var calls []CallTime
	for i := range g.Calls {
		if g.Calls[i].Reason == reason {
			calls = append(calls, g.Calls[i])
		}
	}
	if len(calls) == 0 {
		return finding.Evidence{}
	}
	c := &calls[0]
	return finding.Sentence("%s: %s, %s in all, %s at most", c.Name, words.Counted(int(c.N), "call"), words.Nearly(c.Time), words.Nearly(c.Max))
}

// longestGap tells of the longest gap of t that a reason explains.
func (g *GPUs) longestGap(t *gpuTime, reason Reason) finding.Evidence {
	longest := t.longest[reason]
	if longest.of == nil {
		return finding.Evidence{}
	}
	text := "longest gap " + words.Nearly(longest.Length())
	if longest.From > absolute {
		text += " at " + words.At(longest.From, words.ClockLayout)
	}
	if len(g.GPUs) > 1 {
		text += " on " + g.gpuLabel(longest.of)
	}
	return finding.Sentence("%s", text)
}

// absolute is from when on times count from 1970, and not from the start of a recording:
// 2001.
const absolute = trace.Time(1e18)

// launchDelay tells how far ahead of the device the host launches.
func (g *GPUs) launchDelay() finding.Evidence {
	gpu := &g.GPUs[0]
	if gpu.Delay.N == 0 {
		return finding.Evidence{}
	}
	return finding.Sentence("%s starts kernels %s after their launch in the median; a host that is ahead has a queue", g.gpuLabel(gpu), words.Nearly(gpu.Delay.P50))
}

// largestCopies tells of the operations that copy longest.
func (g *GPUs) largestCopies() []finding.Evidence {
	sums := map[string]*CopyKind{}
	for i := range g.GPUs {
		for k := range g.GPUs[i].Copies {
			c := &g.GPUs[i].Copies[k]
			if sums[c.Name] == nil {
				sums[c.Name] = &CopyKind{Name: c.Name}
			}
			sums[c.Name].Copied.Join(&c.Copied)
		}
	}
	var list []CopyKind
	for _, c := range sums {
		list = append(list, *c)
	}
	sortCopies(list)
	var out []finding.Evidence
	const most = 2
	for i := range list[:min(most, len(list))] {
		c := &list[i]
		text := fmt.Sprintf("%s: %s, %s", c.Name, copiesOf(c.Copied.N), words.Nearly(c.Copied.Time))
		if c.Copied.Bytes > 0 {
			text += fmt.Sprintf(", %s at %s/s", words.Size(c.Copied.Bytes), words.Size(int64(c.Copied.Rate())))
		}
		out = append(out, finding.Sentence("%s", text))
	}
	return out
}

func copiesOf(n int64) string {
	if n == 1 {
		return "1 copy"
	}
	return words.Thousands(n) + " copies"
}

// Devices names the devices: "the GPU", "the 8 GPUs".
func (g *GPUs) Devices() string {
	if len(g.GPUs) == 1 {
		return "the GPU"
	}
	return fmt.Sprintf("the %d GPUs", len(g.GPUs))
}

// are begins a sentence: "the 8 GPUs are".
func (g *GPUs) are() string { return g.Devices() + " " + words.IsOrAre(len(g.GPUs)) }

// Spend and Wait begin sentences: "the 8 GPUs spend".
func (g *GPUs) Spend() string { return g.do("spend") }
func (g *GPUs) Wait() string  { return g.do("wait") }

func (g *GPUs) do(verb string) string {
	if len(g.GPUs) == 1 {
		verb += "s"
	}
	return g.Devices() + " " + verb
}

// lone returns the only one of several devices of whose time something takes the share or more;
// nil if all have it, or more than one.
func (g *GPUs) lone(of func(*GPU) int64, share float64) *GPU {
	var found []*GPU
	for i := range g.GPUs {
		if gpu := &g.GPUs[i]; distribution.Fraction(of(gpu), gpu.Length()) >= share {
			found = append(found, gpu)
		}
	}
	if len(found) != 1 || len(g.GPUs) == 1 {
		return nil
	}
	return found[0]
}

// spread tells on which device a part of the time is least and on which most; nothing of
// one device. column is that of the part, in ns, in the table of devices.
func (g *GPUs) spread(column string, of func(*GPU) int64) finding.Evidence {
	if len(g.GPUs) < 2 {
		return finding.Evidence{}
	}
	part := func(g *GPU) float64 { return distribution.Fraction(of(g), g.Length()) }
	least, most := &g.GPUs[0], &g.GPUs[0]
	for i := range g.GPUs {
		if gpu := &g.GPUs[i]; part(gpu) < part(least) {
			least = gpu
		} else if part(gpu) > part(most) {
			most = gpu
		}
	}
	return finding.Sentence("from %.0f %% on %s to %.0f %% on %s", 100*part(least), g.gpuLabel(least), 100*part(most), g.gpuLabel(most)).
		In("gpu", finding.Row("rank", g.gpuLabel(most)), column, float64(of(most)))
}

// workCalls are parts of the names of CUDA and HIP calls that ask a device for work or
// memory, or wait for it. Nobody makes these in order to see whether they fail. Libraries do
// that with others: they ask for symbols, features and peers that a driver may not have.
var workCalls = []string{"Launch", "Memcpy", "Memset", "Synchronize", "Malloc", "MemAlloc", "HostAlloc"}

// mustSucceed reports whether something is wrong if a call of a name fails.
func mustSucceed(name string) bool {
	return slices.ContainsFunc(workCalls, func(part string) bool { return strings.Contains(name, part) })
}

// namedFailures is how many names of failed calls are told.
const namedFailures = 4

// FailedCalls tells which calls failed that ask devices for work. What they cost is a part of
// such calls.
func (g *GPUs) FailedCalls() ([]finding.Finding, finding.Judged) {
	var failed []*CallTime // the most failures first
	known, failures := int64(0), int64(0)
	for i := range g.Calls {
		c := &g.Calls[i]
		known += c.Results.Known
		if n := c.Results.Failed(); n > 0 {
			failed, failures = append(failed, c), failures+n
		}
	}
	judged := finding.Judged{What: "failed calls", Of: "call", N: int(known), Needed: 1}
	if known == 0 {
		judged.Reason = "the profiles do not hold what calls returned"
	}
	if failures == 0 {
		return nil, judged
	}
	slices.SortStableFunc(failed, func(a, b *CallTime) int { return cmp.Compare(b.Results.Failed(), a.Results.Failed()) })
	part := distribution.Fraction(failures, known)
	f := finding.Finding{Topic: "calls", Text: failureText(failed[0]), Cost: part,
		Metric: finding.Metric{Name: "failed calls", Unit: table.Share, Before: math.NaN(), After: part}}
	for _, c := range failed[1:min(len(failed), namedFailures)] {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", failureText(c)))
	}
	f.Evidence = append(f.Evidence, finding.Sentence("what these calls asked for never ran, so the capture shows less work than it should, and results may be wrong"))
	return []finding.Finding{f}, judged
}

// failureText says how many calls of a name failed, and how: "558 of 13,457
// cudaLaunchKernel calls failed: cudaErrorLaunchOutOfResources (701)".
func failureText(c *CallTime) string {
	how := c.Results.String()
	if errors := c.Results.Errors(); len(errors) == 1 {
		how = walk.ErrorName(errors[0])
	}
	return fmt.Sprintf("%s of %s %s calls failed: %s", words.Thousands(c.Results.Failed()), words.Thousands(c.Results.Known), c.Name, how)
}
