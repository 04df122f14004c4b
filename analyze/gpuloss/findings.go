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
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// GPU time is compute, exposed communication and copies, and idle time; these add up to the whole.
// Every part but compute is a finding from a tenth on, which costs one GPU in ten. The limit is higher
// where even the fastest run needs some of it, or where it is unknown whether there was work.
const (
	muchIdle    = 1.0 / 4  // all idle time: a device needs a microsecond or two between any two kernels
	muchLate    = 1.0 / 10 // without the gaps between kernels that had been launched
	muchBetween = 1.0 / 2  // between steps, where there may be no requests
	muchOutside = 1.0 / 10 // of kernel time, outside of steps: then annotations do not show when there is work
	muchCopied  = 1.0 / 10 // copies: serving copies tokens, not weights
	muchCold    = 1.0 / 10 // while a process starts
	// Exposed communication: training computes meanwhile, but tensor parallel serving communicates in
	// every layer, and the next layer needs the result. At best that takes 9 % of the time on four
	// H100, and 13 % on four MI300X.
	muchExposed        = 3.0 / 20
	muchExposedServing = 1.0 / 4
	// shortest is the least time, in ns, of the steps of one kind to be judged separately.
	shortest = 10_000_000
)

// Idle finds out whether devices are idle for much of the time while there may be work, overall or in
// steps of one kind, and why. The largest reason leads.
func Idle(g *gpu.GPUs, paused Paused) ([]finding.Finding, finding.Check) {
	g = g.Seen()
	t, check := idleTotal(g, "idle time")
	if check.State() != finding.LookedAt {
		return nil, check
	}
	return append(coldStart(g, &t), judge(g, &t, &largePart{of: (*gpuTime).idle, time: (*gpuTime).warm, least: muchIdle, avoidable: (*gpuTime).late, tell: idleFinding(paused),
		devices: spread(g, "idle_ns", (*gpu.GPU).IdleTime)})...), check
}

// IdleBetweenSteps finds out whether devices are idle between steps for most of the time, or for much
// of it if kernels are launched there.
func IdleBetweenSteps(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	g = g.Seen()
	t, check := idleTotal(g, "time between steps")
	if len(g.Steps) == 0 && check.Reason == "" {
		check.Reason = "no steps are annotated"
	}
	share, least := t.part(t.waits[gpu.BetweenSteps]), muchBetween
	outside := distribution.Fraction(order.SumRows(g.GPUs, func(g *gpu.GPU) int64 { return g.OutsideTime }), order.SumRows(g.GPUs, func(g *gpu.GPU) int64 { return g.KernelTime }))
	if outside >= muchOutside {
		least = muchIdle
	}
	if check.State() != finding.LookedAt || share < least {
		return nil, check
	}
	between := func(g *gpu.GPU) int64 { return g.Waits.Time[gpu.BetweenSteps] }
	who, own := GPUsAre(g), share
	if lone := lone(g, between, least); lone != nil {
		who, own = g.Label(lone)+" alone is", distribution.Fraction(between(lone), lone.Length())
	}
	text := fmt.Sprintf("%s idle %.0f %% of the time between steps: no batch to run, or a slow scheduler", who, 100*own)
	if outside >= muchOutside {
		text = fmt.Sprintf("%s idle %.0f %% of the time outside of annotated steps, where hosts launch %.0f %% of the kernels' time", who, 100*own, 100*outside)
	}
	return []finding.Finding{shareFinding(BetweenSubkind, "time between steps", share, text, longestGap(g, &t, gpu.BetweenSteps))}, check
}

// Exposure finds out whether devices spend much of their time on communication that nothing hides,
// overall or in steps of one kind. waiting is evidence of how much of the communication is waiting for
// other ranks.
func Exposure(g *gpu.GPUs, waiting []finding.Evidence) ([]finding.Finding, finding.Check) {
	g = g.Seen()
	t, check := total(g, "exposed communication")
	check.Covered = g.Coverage()
	if check.State() != finding.LookedAt {
		return nil, check
	}
	found := judge(g, &t, &largePart{of: (*gpuTime).exposed, time: (*gpuTime).whole, least: MinExposed(g), tell: exposureFinding,
		devices: spread(g, "exposed_ns", func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCommunication) })})
	for i := range found {
		found[i].Evidence = append(found[i].Evidence, waiting...)
	}
	return found, check
}

// MinExposed returns the share of GPU time from which on exposed communication is a finding.
func MinExposed(g *gpu.GPUs) float64 {
	if len(g.Served) > 0 {
		return muchExposedServing
	}
	return muchExposed
}

// ExposedMetric is the metric of findings about exposed communication. For steps of one kind, " in
// decode" follows.
const ExposedMetric = "exposed communication"

// copiesMetric is the metric of findings about copies while no kernel runs. For one of several runs, its time follows.
const copiesMetric = "exposed copies"

// exposureFinding says how much communication nothing hides.
func exposureFinding(g *gpu.GPUs, t *gpuTime) finding.Finding {
	share := t.part(t.comm)
	text := fmt.Sprintf("%s %.0f %% of the time on %s", GPUsSpend(g), 100*share, ExposedInWords(g))
	if !g.OnlyCommunication() {
		text += " (not overlapped by compute)"
	}
	return shareFinding("communication", ExposedMetric, share, text)
}

// ExposedInWords names exposed communication. If only communication was recorded, nothing shows whether compute hides it.
func ExposedInWords(g *gpu.GPUs) string {
	if g.OnlyCommunication() {
		return "communication"
	}
	return "exposed communication"
}

// ExposedCopies finds out whether devices spend much of their time on copies while no kernel runs.
func ExposedCopies(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	t, check := total(g, "exposed copies")
	share := t.part(t.copies)
	if check.State() != finding.LookedAt || share < muchCopied {
		return nil, check
	}
	copied := func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassMemory) }
	text := fmt.Sprintf("%s %.0f %% of the time%s copying memory while no kernel runs (normal in serving: under 5 %%)", GPUsSpend(g), 100*share, outlier(g, copied))
	if !slices.ContainsFunc(g.GPUs, func(d gpu.GPU) bool { return d.Kernels > 0 }) {
		text = "no kernel was recorded: " + devices(g) + " only copied or filled memory"
		why := ""
		switch {
		case len(g.Cuts) > 0:
			why = "though calls launched some"
		case len(g.Uncalled()) > 0:
			why = "and neither were calls"
		}
		if why != "" {
			text = fmt.Sprintf("no kernel was recorded, %s: %s %.0f %% of the time copying or filling memory", why, GPUsSpend(g), 100*share)
		}
	}
	evidence := append(largestCopies(g), spread(g, "exposed_copy_ns", copied))
	return []finding.Finding{shareFinding("copies", copiesMetric, share, text, evidence...)}, check
}

// shareFinding returns a finding about a share of GPU time. It drops empty evidence.
func shareFinding(subkind, metric string, share float64, text string, evidence ...finding.Evidence) finding.Finding {
	f := finding.Finding{Subkind: subkind, Cost: share, Text: text,
		Metric: finding.Metric{Name: metric, Unit: table.Share, Before: math.NaN(), After: share}}
	f.Evidence = slices.DeleteFunc(evidence, func(e finding.Evidence) bool { return e.Text == "" })
	return f
}

// reasonClauses complete the sentence "the GPU is idle".
var reasonClauses = [gpu.NumReasons]string{
	gpu.Capturing:     "while the host captures CUDA graphs, so what it launches does not run",
	gpu.Compiling:     "while the host compiles code",
	gpu.Modules:       "while the host loads code",
	gpu.Allocation:    "because the host allocates or frees memory",
	gpu.BlockingCopy:  "because copies block the host",
	gpu.ProfilerStart: "while the profilers of other ranks start",
	gpu.Meeting:       "while the host is in gloo collectives",
	gpu.AfterSync:     "because the host waits for the GPU to drain before it launches more",
	gpu.HostWork:      "because the host launches kernels too late",
	gpu.LaunchGap:     "in gaps under 30 us between kernels that were already launched",
	gpu.Dependency:    "because launched work waits for an event, another stream, or the driver",
	gpu.Withheld:      "because it starts launched kernels late: another process uses it, or they wait for work that was not recorded",
	gpu.Unseen:        "while the host waits for GPU work that was not recorded",
	gpu.Migration:     "between page migrations of unified memory",
	gpu.NotRecorded:   "for unknown reasons: the launches were not recorded",
}

// Subkinds of findings about idle time. Other packages add to some of them.
const (
	HostSubkind    = "host"  // the host is late
	StartSubkind   = "start" // a process starts
	MeetSubkind    = "meet"  // the host waits for other ranks
	idleSubkind    = "idle"
	BetweenSubkind = "steps" // between steps
)

// Subkinds of findings about exposed communication, and the metric of waiting in it.
const (
	WaitSubkind     = "waiting"                // for late ranks
	AbsentSubkind   = "waits for absent ranks" // for ranks that have no files
	TransferSubkind = "transfers"              // of data
	PipelineSubkind = "pipeline"               // between stages
	WaitMetric      = "waiting in collectives"
)

// subkind returns the subkind of findings about a reason.
func subkind(r gpu.Reason) string {
	if r.OfHost() {
		return HostSubkind
	}
	if r == gpu.Meeting {
		return MeetSubkind
	}
	return idleSubkind
}

// IdleMetric is the metric of the finding that devices are idle. For steps of one kind, " in decode" follows.
const IdleMetric = "idle time"

// Paused returns for how long a device of a rank waited for a host that paused, in ns.
type Paused func(rank, device int32) int64

// AboutIdle reports whether a finding is about idle time of devices.
func AboutIdle(f *finding.Finding) bool {
	switch f.Subkind {
	case HostSubkind, StartSubkind, MeetSubkind, idleSubkind, BetweenSubkind:
		return f.Kind == finding.GPU
	}
	return false
}

// AboutExposed reports whether a finding says that no other work hides communication or copies.
func AboutExposed(f *finding.Finding) bool {
	return f.Kind == finding.GPU && (strings.HasPrefix(f.Metric.Name, ExposedMetric) || strings.HasPrefix(f.Metric.Name, copiesMetric))
}

// idleFinding says why devices are idle.
func idleFinding(paused Paused) func(*gpu.GPUs, *gpuTime) finding.Finding {
	return func(g *gpu.GPUs, t *gpuTime) finding.Finding { return tellIdle(g, t, paused) }
}

func tellIdle(g *gpu.GPUs, t *gpuTime, paused Paused) finding.Finding {
	reasons := t.largest()
	most, idle := reasons[0], distribution.Fraction(t.idle(), t.warm())
	var parts []string
	for _, reason := range reasons {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", gpu.ReasonWords[reason], 100*distribution.Fraction(t.waits[reason], t.warm())))
	}
	evidence := []finding.Evidence{finding.Sentence("idle by reason: %s", strings.Join(parts, ", ")), callEvidence(g.Calls, most), longestGap(g, t, most)}
	if most == gpu.HostWork {
		evidence = slices.Insert(evidence, 0, smallKernels(g, paused))
	}
	switch most {
	case gpu.Migration:
		evidence = append(evidence, largestCopies(g)...)
	case gpu.HostWork:
		evidence = append(evidence, noGraphs(g), launchDelay(g))
	}
	if most.OfHost() {
		evidence = append(evidence, burdens(g)...)
	}
	who := ""
	if all := g.Total((*gpu.GPU).IdleTime); t.length == g.Length() && all-t.idle() < t.length/100 { // otherwise t is a part of the time
		who = outlier(g, (*gpu.GPU).IdleTime)
	}
	text := fmt.Sprintf("%s idle %s%s, %s%s", GPUsAre(g), t.idleInWords(), who, howMuch(distribution.Fraction(t.waits[most], t.idle())), clauseOf(g, t, most))
	if most == gpu.Unseen {
		text = fmt.Sprintf("no recorded work runs on %s for %s, %swhile the host waits for GPU work: likely for work from before the capture, work that was not recorded, or that of another process",
			devices(g), t.idleInWords(), howMuch(distribution.Fraction(t.waits[most], t.idle())))
	}
	switch cold := t.cold.Total(); {
	case t.part(cold) < muchCold:
	case 2*t.cold.Time[gpu.ProfilerStart] >= cold:
		text = "apart from profiler startup, " + text
	default:
		text = "apart from its cold start, " + text
	}
	f := shareFinding(subkind(most), IdleMetric, idle, text, evidence...)
	if most == gpu.Unseen || most == gpu.Withheld {
		f.Confidence = finding.Likely // there may be something else to wait for
	}
	return f
}

// idleInWords says which share of the time is idle. Idle time between steps is named separately, as
// there may have been nothing to run.
func (t *gpuTime) idleInWords() string {
	idle, between := 100*distribution.Fraction(t.idle(), t.warm()), 100*distribution.Fraction(t.waits[gpu.BetweenSteps], t.warm())
	switch {
	case between >= 100*muchOfRegime:
		return fmt.Sprintf("%.0f %% of the time between steps and %.0f %% in them", between, idle)
	case between >= 1:
		return fmt.Sprintf("%.0f %% of the time in steps", idle)
	}
	if t.withheld > 0 {
		return fmt.Sprintf("%.0f %% of the time with nothing launched", idle)
	}
	return percent(t.idle(), t.warm()) + " of the time"
}

// clauseOf completes the sentence that devices are idle, for a reason. If most of it is at the edges of
// steps, no launch is late: there is none before, or after.
func clauseOf(g *gpu.GPUs, t *gpuTime, r gpu.Reason) string {
	lead, trail := g.Total(func(d *gpu.GPU) int64 { return d.Lead }), g.Total(func(d *gpu.GPU) int64 { return d.Trail })
	switch {
	case r != gpu.HostWork:
	case 2*lead > t.waits[r]:
		each := ""
		if len(g.GPUs) > 1 {
			lead, each = lead/int64(len(g.GPUs)), " per GPU"
		}
		return fmt.Sprintf("because the host works for %s%s between the start of a step and its first launch", words.Nearly(lead), each)
	case 2*trail > t.waits[r]:
		return fmt.Sprintf("because the step goes on for %s after the last work for the GPU", words.Nearly(trail))
	}
	return reasonClauses[r]
}

// howMuch says what share of idle time the largest reason has; its clause follows.
func howMuch(part float64) string {
	switch {
	case part < 0.5:
		return "partly "
	case part < 0.9:
		return "mostly "
	}
	return ""
}

// burdens says why the host may be faster than the capture shows: recording slows it down.
func burdens(g *gpu.GPUs) (caveats []finding.Evidence) {
	if len(g.Recorded) > 0 {
		caveats = append(caveats, finding.Sentence("the profiler also recorded %s, which slows the host: expect less idle time without that", strings.Join(g.Recorded, ", ")))
	}
	if g.GraphCapture {
		caveats = append(caveats, finding.Sentence("some of the time is CUDA graph capture at startup, when the host is slower than while serving"))
	}
	return caveats
}

// largest returns the reasons with at least 1 % of the time, the largest first. It leaves out time
// between steps.
func (t *gpuTime) largest() []gpu.Reason {
	var list []gpu.Reason
	for reason := gpu.Capturing; reason < gpu.NumReasons; reason++ {
		if reason != gpu.BetweenSteps && t.part(t.waits[reason]) >= 0.01 {
			list = append(list, reason)
		}
	}
	slices.SortStableFunc(list, func(a, b gpu.Reason) int { return cmp.Compare(t.waits[b], t.waits[a]) })
	return list
}

// WorstRank returns the rank whose device spent the largest share of its time on what a finding of this
// package is about, and the class of work that shows it. "" is no rank.
func WorstRank(g *gpu.GPUs, subkind string) (rank string, shows kernelname.Class) {
	shows = kernelname.ClassCompute
	of := (*gpu.GPU).IdleTime
	switch subkind {
	case "communication":
		shows = kernelname.ClassCommunication
	case "copies", "pageable copies":
		shows = kernelname.ClassMemory
	}
	if shows != kernelname.ClassCompute {
		of = func(d *gpu.GPU) int64 { return d.Exposed(shows) }
	}
	most := 0.0
	for i := range g.GPUs {
		d := &g.GPUs[i]
		if share := float64(of(d)) / float64(max(1, d.Length())); share > most {
			most, rank = share, d.Rank
		}
	}
	return rank, shows
}

// muchOfRegime is the least share of all time that something must cost if it is large only in steps of
// one kind.
const muchOfRegime = 1.0 / 20

// A regime is what all devices did in steps of one kind. Prefill and decode are separate regimes: what
// is large in one may be small in the mixture.
type regime struct {
	name string // "decode"
	gpuTime
}

// regimes returns prefill and decode; nil unless there are both.
func regimes(g *gpu.GPUs) []regime {
	var out []regime
	for _, kind := range [...]profile.StepKind{profile.StepPrefill, profile.StepDecode} {
		r := regime{name: profilewalk.StepKinds[kind]}
		for i := range g.GPUs {
			did := &g.GPUs[i].BySteps[kind]
			r.add(&g.GPUs[i], did, did.Total())
		}
		if r.length == 0 {
			return nil
		}
		out = append(out, r)
	}
	return out
}

// A largePart is a part of GPU time that is a finding if it is large.
type largePart struct {
	of    func(*gpuTime) int64
	time  func(*gpuTime) int64 // what it is a share of
	least float64
	// avoidable is the part that a fast run does not have; it counts from muchLate on. nil is none.
	avoidable func(*gpuTime) int64
	tell      func(*gpu.GPUs, *gpuTime) finding.Finding
	// devices says how devices differ over the whole time.
	devices finding.Evidence
}

// judge finds out whether a part is large in the whole time, or in that of a regime. Its cost is a
// share of the whole in either case.
func judge(g *gpu.GPUs, whole *gpuTime, p *largePart) (found []finding.Finding) {
	regimes := regimes(g)
	if p.share(whole) >= p.least && whole.part(p.of(whole)) >= muchOfRegime {
		return []finding.Finding{p.ofWhole(g, whole, regimes)}
	}
	for i := range regimes {
		r := &regimes[i]
		cost := distribution.Fraction(p.of(&r.gpuTime), whole.length)
		if r.length < shortest || p.share(&r.gpuTime) < p.least || cost < muchOfRegime {
			continue
		}
		f := p.tell(g, &r.gpuTime)
		f.Text, f.Metric.Name, f.Cost = fmt.Sprintf("in %s, %s", r.name, f.Text), f.Metric.Name+" in "+r.name, cost
		f.Evidence = append(f.Evidence, p.inRegimes(regimes))
		found = append(found, f)
	}
	if len(found) == 0 && p.avoidable != nil && distribution.Fraction(p.avoidable(whole), p.time(whole)) >= muchLate && whole.part(p.of(whole)) >= muchOfRegime {
		return []finding.Finding{p.ofWhole(g, whole, regimes)}
	}
	return found
}

// ofWhole returns the finding about the whole time.
func (p *largePart) ofWhole(g *gpu.GPUs, whole *gpuTime, regimes []regime) finding.Finding {
	f := p.tell(g, whole)
	f.Cost = whole.part(p.of(whole))
	for _, e := range [...]finding.Evidence{p.devices, p.inRegimes(regimes)} {
		if e.Text != "" {
			f.Evidence = append(f.Evidence, e)
		}
	}
	return f
}

// share returns the part's share of the time.
func (p *largePart) share(t *gpuTime) float64 { return distribution.Fraction(p.of(t), p.time(t)) }

// inRegimes says how large a part is in each regime, the largest first: "in decode 41 %, in prefill 6
// %". It is empty without regimes.
func (p *largePart) inRegimes(regimes []regime) finding.Evidence {
	part := func(r *regime) float64 { return p.share(&r.gpuTime) }
	regimes = slices.Clone(regimes)
	slices.SortStableFunc(regimes, func(a, b regime) int { return cmp.Compare(part(&b), part(&a)) })
	parts := order.EachRow(regimes, func(r *regime) string { return fmt.Sprintf("in %s %.0f %%", r.name, 100*part(r)) })
	return finding.Sentence("%s", strings.Join(parts, ", "))
}
