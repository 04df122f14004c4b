package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// The time of devices is computing, communication and copies that nothing hides, and idle
// time, and these add up. What is not computing is a finding where it is large.
const (
	muchIdle    = 1.0 / 4  // while there are steps, or nobody knows when there was work
	muchBetween = 1.0 / 2  // between steps, where it may be for want of requests
	muchExposed = 1.0 / 4  // communication: tensor parallel decoding communicates in every layer
	muchCopied  = 1.0 / 10 // copies: serving copies tokens, and no weights
	muchOfCalls = 1.0 / 10 // one kind of calls, where the idle time as a whole is not much
	// FewRows kernels and copies in less than shortest ns are a try, and tell nothing of
	// how devices are used.
	FewRows  = 100
	shortest = 10_000_000
)

// A gpuTime is what some devices did, in ns.
type gpuTime struct {
	length, comm, copies int64
	waits                [NumReasons]int64
	rows                 int64
}

func (t *gpuTime) add(g *GPU) {
	t.length = distribution.AddTimes(t.length, g.Length())
	t.comm = distribution.AddTimes(t.comm, g.Exposed(profile.ClassCommunication))
	t.copies = distribution.AddTimes(t.copies, g.Exposed(profile.ClassMemory))
	for reason, wait := range g.Waits.Time {
		t.waits[reason] = distribution.AddTimes(t.waits[reason], wait)
	}
	t.rows += g.Rows
}

// idle returns the idle time, without that between steps.
func (t *gpuTime) idle() int64 {
	total := int64(0)
	for reason, wait := range t.waits {
		if Reason(reason) != BetweenSteps {
			total = distribution.AddTimes(total, wait)
		}
	}
	return total
}

func (t *gpuTime) part(ns int64) float64 { return distribution.Fraction(ns, t.length) }

// time adds up what all devices did.
func (g *GPUs) time() gpuTime {
	var t gpuTime
	for i := range g.GPUs {
		t.add(&g.GPUs[i])
	}
	return t
}

// Enough reports whether there is enough to judge how devices spent their time, and how
// many kernels and copies there are.
func (g *GPUs) Enough() (rows int64, enough bool) {
	t := g.time()
	return t.rows, t.rows >= FewRows || t.length >= shortest
}

// Findings tells what keeps devices from computing. waiting are sentences about how much
// of communication is waiting for others.
func (g *GPUs) Findings(waiting []string) []finding.Finding {
	if _, enough := g.Enough(); !enough {
		return nil
	}
	t := g.time()
	var out []finding.Finding
	if t.part(t.idle()) >= muchIdle {
		out = append(out, g.idleFinding(&t))
	} else {
		out = append(out, g.callFindings(&t)...)
	}
	out = append(out, g.graphFindings(&t)...)
	if between := t.part(t.waits[BetweenSteps]); between >= muchBetween {
		out = append(out, g.gpuFinding("steps", between,
			fmt.Sprintf("%s %s idle %.0f %% of the time between steps: no batch to run, or a slow scheduler", g.Devices(), g.isOrAre(), 100*between), g.longestGap(BetweenSteps)))
	}
	if exposed := t.part(t.comm); exposed >= muchExposed {
		out = append(out, g.gpuFinding("communication", exposed,
			fmt.Sprintf("%s %s %.0f %% of the time communicating with no computation to hide it", g.Devices(), g.spendOrSpends(), 100*exposed),
			append(g.spread(func(g *GPU) int64 { return g.Exposed(profile.ClassCommunication) }), waiting...)...))
	}
	if copied := t.part(t.copies); copied >= muchCopied {
		out = append(out, g.gpuFinding("copies", copied,
			fmt.Sprintf("%s %s %.0f %% of the time copying memory with no kernel running (normal: under 5 %%)", g.Devices(), g.spendOrSpends(), 100*copied),
			append(g.largestCopies(), g.spread(func(g *GPU) int64 { return g.Exposed(profile.ClassMemory) })...)...))
	}
	return out
}

// gpuFinding is a finding about a share of the time of devices. Empty evidence is left
// out.
func (g *GPUs) gpuFinding(topic string, share float64, text string, evidence ...string) finding.Finding {
	evidence = slices.DeleteFunc(evidence, func(s string) bool { return s == "" })
	return finding.Finding{Kind: finding.GPU, Topic: topic, Weight: share, Show: []string{"--by-rank"}, Text: text, Evidence: evidence}
}

// reasonClauses end the sentence that a device is idle.
var reasonClauses = [NumReasons]string{
	Modules:      "because the host loads kernels or instantiates CUDA graphs",
	Allocation:   "because the host allocates or frees memory",
	BlockingCopy: "because copies block the host",
	AfterSync:    "because the host waits until the GPU has run dry before it launches more",
	HostWork:     "because the host launches kernels too late",
	LaunchGap:    "in gaps under 30 us between kernels that were already launched",
	Dependency:   "because launched work waits for an event or another stream",
	Unseen:       "as far as the capture shows: the host waits for GPU work that was not recorded",
	Migration:    "between page migrations of unified memory",
	NotRecorded:  "and the capture does not show why: the launches were not recorded",
}

// topic is what findings of a reason are about.
func (r Reason) topic() string {
	if r.ofHost() {
		return "host"
	}
	return "idle"
}

// idleFinding says why devices are idle.
func (g *GPUs) idleFinding(t *gpuTime) finding.Finding {
	most := Reason(0)
	var parts []string
	for reason := Modules; reason < NumReasons; reason++ {
		if reason != BetweenSteps && t.waits[reason] > t.waits[most] {
			most = reason
		}
	}
	for _, reason := range t.largest() {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", ReasonWords[reason], 100*t.part(t.waits[reason])))
	}
	idle := t.part(t.idle())
	mostly := ""
	if t.waits[most] < t.idle()/10*9 {
		mostly = "mostly "
	}
	text := fmt.Sprintf("%s %s idle %.0f %% of the time, %s%s", g.Devices(), g.isOrAre(), 100*idle, mostly, reasonClauses[most])
	evidence := []string{"idle by reason: " + strings.Join(parts, ", ")}
	evidence = append(evidence, g.callEvidence(most), g.longestGap(most))
	if most == Migration {
		evidence = append(evidence, g.largestCopies()...)
	}
	if most == HostWork {
		evidence = append(evidence, g.noGraphs(), g.launchDelay())
	}
	evidence = append(evidence, g.spread(func(g *GPU) int64 { return g.Idle.Total() - g.Waits.Time[BetweenSteps] })...)
	return g.gpuFinding(most.topic(), idle, text, evidence...)
}

// largest returns the reasons of at least 1 % of the time, the largest first.
func (t *gpuTime) largest() []Reason {
	var list []Reason
	for reason := Modules; reason < NumReasons; reason++ {
		if t.part(t.waits[reason]) >= 0.01 {
			list = append(list, reason)
		}
	}
	slices.SortStableFunc(list, func(a, b Reason) int { return int(min(1, max(-1, t.waits[b]-t.waits[a]))) })
	return list
}

// callFindings are about calls that keep devices idle, where the idle time as a whole is
// not much.
func (g *GPUs) callFindings(t *gpuTime) []finding.Finding {
	var out []finding.Finding
	for _, reason := range [...]Reason{Modules, Allocation, BlockingCopy, AfterSync} {
		if share := t.part(t.waits[reason]); share >= muchOfCalls {
			out = append(out, g.gpuFinding("host", share,
				fmt.Sprintf("%s %s idle %.0f %% of the time %s", g.Devices(), g.isOrAre(), 100*share, reasonClauses[reason]), g.callEvidence(reason), g.longestGap(reason)))
		}
	}
	return out
}

// callEvidence tells which calls a reason is about.
func (g *GPUs) callEvidence(reason Reason) string {
	var calls []CallTime
	for i := range g.Calls {
		if g.Calls[i].Reason == reason {
			calls = append(calls, g.Calls[i])
		}
	}
	if len(calls) == 0 {
		return ""
	}
	c := &calls[0]
	return fmt.Sprintf("%s: %s, %s in all, %s at most", c.Name, words.Counted(int(c.N), "call"), words.Nearly(c.Time), words.Nearly(c.Max))
}

// longestGap tells of the longest gap that a reason explains.
func (g *GPUs) longestGap(reason Reason) string {
	var longest Gap
	var of *GPU
	for i := range g.GPUs {
		if gap := g.GPUs[i].Waits.Longest[reason]; gap.length() > longest.length() {
			longest, of = gap, &g.GPUs[i]
		}
	}
	if of == nil {
		return ""
	}
	text := "longest gap " + words.Nearly(longest.length())
	if longest.From > absolute {
		text += " at " + words.Clock(longest.From).Format("15:04:05.000")
	}
	if len(g.GPUs) > 1 {
		text += " on " + g.gpuLabel(of)
	}
	return text
}

// absolute is from when on times count from 1970, and not from the start of a recording:
// 2001.
const absolute = trace.Time(1e18)

// launchDelay tells how far ahead of the device the host launches.
func (g *GPUs) launchDelay() string {
	gpu := &g.GPUs[0]
	if gpu.Delay.N == 0 {
		return ""
	}
	return fmt.Sprintf("%s starts kernels %s after their launch in the median; a host that is ahead has a queue", g.gpuLabel(gpu), words.Nearly(gpu.Delay.P50))
}

// largestCopies tells of the operations that copy longest.
func (g *GPUs) largestCopies() []string {
	sums := map[string]*CopyKind{}
	for i := range g.GPUs {
		for k := range g.GPUs[i].Copies {
			c := &g.GPUs[i].Copies[k]
			if sums[c.Name] == nil {
				sums[c.Name] = &CopyKind{Name: c.Name}
			}
			sums[c.Name].add(c)
		}
	}
	var list []CopyKind
	for _, c := range sums {
		list = append(list, *c)
	}
	sortCopies(list)
	var out []string
	const most = 2
	for i := range list[:min(most, len(list))] {
		c := &list[i]
		text := fmt.Sprintf("%s: %s, %s", c.Name, copiesOf(c.N), words.Nearly(c.Time))
		if c.Bytes > 0 {
			text += fmt.Sprintf(", %s at %.3g GB/s", words.Size(c.Bytes), c.Rate()/1e9)
		}
		out = append(out, text)
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

func (g *GPUs) isOrAre() string { return words.IsOrAre(len(g.GPUs)) }

func (g *GPUs) spendOrSpends() string {
	if len(g.GPUs) == 1 {
		return "spends"
	}
	return "spend"
}

// spread tells on which device a part of the time is least and on which most.
func (g *GPUs) spread(of func(*GPU) int64) []string {
	if len(g.GPUs) < 2 {
		return nil
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
	return []string{fmt.Sprintf("from %.0f %% on %s to %.0f %% on %s", 100*part(least), g.gpuLabel(least), 100*part(most), g.gpuLabel(most))}
}
