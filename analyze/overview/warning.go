package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// notice is a warning about inputs from which nothing is lost.
func notice(text string) document.Warning {
	return document.Warning{Severity: trace.Notice, Text: text}
}

// warnings lists what is lost from the inputs, missing, or unknown, worst first.
func (o *Overview) warnings() []document.Warning {
	d := append(o.diagWarnings(), o.profilerWarnings()...)
	if o.Requests != nil {
		d = append(d, o.requestWarnings()...)
		d = append(d, o.unitWarnings()...)
		d = append(d, o.traceWarnings()...)
		d = append(d, o.rankWarnings()...)
		d = append(d, o.hostWarnings()...)
	}
	d = append(d, o.clockWarnings()...)
	if o.Profiles != nil {
		d = append(d, absenceWarnings(o.Profiles)...)
	}
	if o.GPUs != nil {
		d = append(d, runWarnings(o.GPUs)...)
	}
	switch {
	case o.GPUs != nil && o.Memory == nil && isForeign(o.Profiles, o.GPUs):
		d = append(d, notice("no event has a category of PyTorch's profiler: another program wrote this trace, and which events ran on hosts or on devices is unknown; 'sgtrace merge' draws them"))
	case o.onlyMeets():
		d = append(d, notice("the profiles hold collectives, and nothing else that devices did: whether they compute or idle in between is not known"))
	case o.GPUs != nil && (o.Memory == nil || o.GPUs.Ran() || len(o.GPUs.Calls) > 0): // snapshots of memory alone say nothing of what runs
		d = append(d, deviceWarnings(o.GPUs, len(o.Profiles.MissingRanks) > 0, o.Devices.From != 0 || o.Devices.To != 0)...)
		if o.Collectives != nil {
			d = append(d, lossWarnings(o.Collectives, o.GPUs)...)
		}
		if o.GPUs.Ran() && o.Devices.From == 0 && o.Devices.To == 0 {
			d = append(d, hostOnlyWarnings(o.Profiles, o.GPUs)...)
		}
	}
	slices.SortStableFunc(d, func(x, y document.Warning) int { return cmp.Compare(y.Severity, x.Severity) })
	return d
}

// diagWarnings are about damaged inputs: one warning with the first of the worst problems, and the number of others.
func (o *Overview) diagWarnings() []document.Warning {
	if o.Diags == nil {
		return nil
	}
	var worst *trace.Diag
	n := 0
	all := o.Diags.All()
	for i := range all {
		d := &all[i]
		if d.Severity < trace.DataLoss {
			continue
		}
		n++
		if worst == nil || d.Severity > worst.Severity {
			worst = d
		}
	}
	if worst == nil {
		return nil
	}
	text := "input was dropped or damaged: "
	if worst.Severity == trace.Error {
		text = "an input could not be read: "
	}
	text += fmt.Sprintf("%s: %s [%s]", worst.Pos, worst.Msg, worst.Code)
	if worst.Count > 1 {
		text += fmt.Sprintf(", %d times", worst.Count)
	}
	if n > 1 {
		text += fmt.Sprintf("; and %d more of the kind", n-1)
	}
	return []document.Warning{{Severity: worst.Severity, Text: text}}
}

// maxNamed is the number of inputs that a warning names if a profiler said the same of several.
const maxNamed = 2

// profilerWarnings are what profilers said about their own recordings, errors before warnings, and which records hold
// slow or failed requests only. If ranks are missing, captures that repeat others are named: they may have been meant to be theirs.
func (o *Overview) profilerWarnings() (d []document.Warning) {
	if o.Diags == nil {
		return nil
	}
	of := []*trace.Message{trace.NsysError, trace.NsysWarning, trace.RecordsSlowOnly, trace.RecordsFailedOnly}
	if o.Profiles != nil && len(o.Profiles.MissingRanks) > 0 {
		of = append(of, trace.CaptureRepeated)
	}
	for _, m := range of {
		var said order.Groups[string, []string] // names of the inputs, by text
		for _, x := range o.Diags.All() {
			if x.Message == m {
				order.Add(&said, x.Msg, x.Pos.String())
			}
		}
		for i, text := range said.Keys {
			of := said.List[i]
			if n := len(of); n > maxNamed {
				of = []string{of[0], fmt.Sprintf("and %d more", n-1)}
			}
			d = append(d, document.Warning{Severity: m.Severity, Text: fmt.Sprintf("%s: %s [%s]", strings.Join(of, ", "), text, m.Code)})
		}
	}
	return d
}

// requestWarnings are about incomplete requests.
func (o *Overview) requestWarnings() []document.Warning {
	s := o.Requests
	var d []document.Warning
	add := func(n int, format string) {
		if n > 0 {
			d = append(d, notice(fmt.Sprintf(format, words.Counted(n, "request"))))
		}
	}
	flagged := func(f request.Flags) int {
		n := 0
		for i := range s.AllRequests() {
			if s.Requests[i].Flags&f != 0 {
				n++
			}
		}
		return n
	}
	add(o.Statuses[request.Unfinished], "%s without an end in the files: not counted in latencies")
	if o.Loss.Lost > 0 {
		text := o.Loss.Text()
		if o.Loss.Incomplete > 0 {
			text += ": these are left out of comparisons"
		}
		d = append(d, notice(text))
	} else {
		add(o.Loss.Incomplete, "%s with spans missing, at the start or end of the files: left out of comparisons")
	}
	add(flagged(request.Unjoined|request.RoomCollision), "%s whose prefill or decode half is missing or ambiguous")
	add(o.Tail.Implausible, "%s with times that cannot be right: left out")
	return d
}

// rankWarnings are about ranks that must have taken part but have no spans in the files.
func (o *Overview) rankWarnings() []document.Warning {
	var d []document.Warning
	for i := range o.Servers {
		if s := &o.Servers[i]; len(s.Missing) > 0 && !slices.Contains(o.Select, "--rank") {
			d = append(d, notice(fmt.Sprintf("spans of %s of the %s servers are missing: nothing is known of those ranks", words.Some(s.Missing, 4), s.Role)))
		}
	}
	return d
}

// hostWarnings are about servers that don't record their host.
func (o *Overview) hostWarnings() []document.Warning {
	s := o.Requests
	roles := map[request.Role]bool{}
	several := false
	for i := range s.Procs {
		if p := &s.Procs[i]; p.Host == "" && slices.Contains(request.ServingRoles, p.Role) {
			roles[p.Role] = true
			several = several || s.Server(i) > 0
		}
	}
	if len(roles) < 2 && !several {
		return nil
	}
	return []document.Warning{notice("servers do not record their hosts (host_id): those with the same process ID look like one, and neither their times nor their ranks can be compared")}
}

// unitWarnings say that the times of dumps look like microseconds or milliseconds instead of OTLP's nanoseconds: read
// in that unit, they lie between 2000 and 2100.
func (o *Overview) unitWarnings() []document.Warning {
	const from, to = 946684800e9, 4102444800e9 // the years 2000 and 2100, in ns
	for _, unit := range [...]struct {
		size int64 // ns
		name string
	}{{1e3, "microseconds"}, {1e6, "milliseconds"}} {
		if at := int64(o.From); at >= from/unit.size && at < to/unit.size {
			return []document.Warning{notice(fmt.Sprintf("times look like %s since 1970, but OTLP has nanoseconds: if so, everything took %s times as long as shown; set the unit right where they were exported",
				unit.name, words.Thousands(unit.size)))}
		}
	}
	return nil
}

// traceWarnings are about what the level of tracing leaves out.
func (o *Overview) traceWarnings() []document.Warning {
	s := o.Requests
	if len(s.Requests) == 0 {
		return []document.Warning{notice(requests.NoRequests)}
	}
	switch {
	case !o.Stages:
		return []document.Warning{notice("servers traced only whole requests, no stages: where their time went is unknown")}
	case !o.Steps:
		how := "SGLang traces them at SGLANG_TRACE_LEVEL=3 or higher"
		if !slices.ContainsFunc(s.Writers, func(w request.Writer) bool {
			return w.Layouts&(request.LayoutV1a|request.LayoutV1b|request.LayoutV2) != 0
		}) {
			how = "vLLM traces requests, not steps"
		}
		return []document.Warning{notice("no decode steps were traced, so ITL and slow decode ranks are unknown (" + how + ")")}
	}
	return costWarnings(s)
}

// costWarnings say where tracing takes so much of a scheduler's time that it may be slow because of it.
func costWarnings(s *request.Set) []document.Warning {
	const much = 0.05
	worst, slowed, tracing := request.None, 0, s.Tracing()
	for p := range tracing {
		if !s.Procs[p].Schedules || tracing[p].Share() < much {
			continue
		}
		if slowed++; worst == request.None || tracing[p].PerSecond > tracing[worst].PerSecond {
			worst = p
		}
	}
	if worst == request.None {
		return nil
	}
	others := ""
	if slowed > 1 {
		others = fmt.Sprintf(" and 5 %% or more of %s", words.Counted(slowed-1, "other rank"))
	}
	x := &tracing[worst]
	return []document.Warning{notice(fmt.Sprintf("tracing itself may take %s %% of the time of %s%s (%s spans/s at about 40 us each): "+
		"SGLANG_TRACE_ASYNC=1 or a lower SGLANG_TRACE_LEVEL takes less",
		words.InPercent(x.Share()), s.RankName(worst), others, words.Thousands(int64(x.PerSecond))))}
}

// clockWarnings are about clocks that differ, and about clocks that nothing relates to the others.
func (o *Overview) clockWarnings() []document.Warning {
	const much = 1_000_000 // ns; stages take longer, so a smaller offset does not matter
	var off, alone []string
	most := int64(0)
	for i := range o.Clocks {
		c := &o.Clocks[i]
		switch {
		case c.Why == "reference":
		case !c.Trusted():
			alone = append(alone, c.Host)
		case c.Offset != 0 || c.Drift != 0:
			off = append(off, c.String())
			most = max(most, c.Most, c.Offset, -c.Offset)
		}
	}
	d := o.stepWarnings()
	if most >= much {
		d = append(d, notice("host clocks differ and were aligned: "+words.Some(off, 4)))
	}
	if len(alone) > 0 {
		d = append(d, notice("nothing ties these clocks to the others, so their times are used as recorded: "+words.Some(alone, 4)))
	}
	return d
}

// stepWarnings are about clocks that were set while requests were served.
func (o *Overview) stepWarnings() (d []document.Warning) {
	if o.Requests == nil {
		return nil
	}
	for _, x := range o.Requests.Steps {
		way, by := "forward", x.By
		if by < 0 {
			way, by = "back", -by
		}
		d = append(d, notice(fmt.Sprintf("the clock of %s was set %s by %s (± %s) at about %s by its own time; its later times are corrected for that",
			x.Host, way, words.Nearly(by), words.Nearly(x.Err), words.At(x.At, words.TenthLayout))))
	}
	return d
}

// Trusted reports whether any evidence relates the clock to the others.
func (c *HostClock) Trusted() bool { return c.Why != "assumed" || c.By != "" }

// String says how far the clock is off, and how that is known.
func (c *HostClock) String() string {
	side := "ahead"
	if c.Offset < 0 {
		side = "behind"
	}
	text := fmt.Sprintf("%s %s %s", c.Host, words.Nearly(max(c.Offset, -c.Offset)), side)
	if c.Drift != 0 {
		text += fmt.Sprintf(", drifting %+.1f ppm", float64(c.Drift)/1000)
	}
	var how []string
	if c.By != "" {
		how = append(how, "from "+c.By)
	}
	if c.Bound > 0 {
		within := "± " + words.Nearly(c.Bound)
		if c.Lopsided {
			within += ", because few are fast in one direction"
		}
		how = append(how, within)
	}
	return text + words.Aside(strings.Join(how, ", "))
}

// absenceWarnings are about ranks without a trace.
func absenceWarnings(set *profile.Set) []document.Warning {
	var d []document.Warning
	for i := range set.MissingRanks {
		a := &set.MissingRanks[i]
		size, missing := fmt.Sprint(a.Size), strings.Join(a.Missing, ", ")
		if a.AtLeast {
			size = "at least " + size
		}
		if a.More > 0 {
			missing += fmt.Sprintf(" and %d more", a.More)
		}
		why := "whether they wait for the missing rank"
		if a.Size-a.Seen > 1 {
			why = "whether they wait for missing ranks"
		}
		if a.Seen == 1 {
			why = "who waits for whom in collectives"
		}
		d = append(d, notice(fmt.Sprintf("traces of only %d of %s ranks, so %s is unknown; missing: %s", a.Seen, size, why, missing)))
	}
	return d
}

// runWarnings are about captures that come from several runs.
func runWarnings(g *gpu.GPUs) []document.Warning {
	if len(g.Runs) < 2 {
		return nil
	}
	which := fmt.Sprintf("%d runs that do not overlap", len(g.Runs))
	if !words.IsDate(g.Runs[0].To) {
		which += ", as far as their clocks tell"
	}
	if !g.Divided() {
		return []document.Warning{notice("the captures come from " + which + ", and count together: look at one at a time, compare two with 'sgtrace diff', or all with 'sgtrace report --fleet'")}
	}
	return []document.Warning{notice("the captures come from " + which + ": findings judge each run separately, tables list the ranks of all runs; 'sgtrace report --fleet' says what is late in run after run")}
}

// muchUnclassified is the share of kernel time without a known class at which the division of GPU time becomes
// doubtful.
const muchUnclassified = 1.0 / 4

// isForeign reports whether profiles have events, but none that any report understands, not even activity of threads.
func isForeign(set *profile.Set, g *gpu.GPUs) bool {
	if g.Ran() || len(g.Runs) > 0 || g.Unran.Launches > 0 || set.Exports {
		return false
	}
	known := false
	for _, s := range set.Streams {
		s.Frames(func(*profile.Frame) bool { known = true; return false })
		s.Samples(func(*profile.Sample) bool { known = true; return false })
		s.Runs(func(*profile.Run) bool { known = true; return false })
		s.CounterValues(func(*profile.CounterValue) bool { known = true; return false })
		if known {
			return false
		}
	}
	return true
}

// deviceWarnings are about what the captures of devices leave out. more says that there are ranks without a capture;
// windowed, that only a window of time was read.
func deviceWarnings(g *gpu.GPUs, more, windowed bool) []document.Warning {
	var d []document.Warning
	rows, missing := g.Launched()
	lost := g.Unran.Lost - missing // a kernel without a recorded call may be one that was counted as lost
	switch {
	case windowed && !g.Ran():
		d = append(d, notice("no device kernels or copies are between --from and --to"))
	case windowed:
	case !g.Ran() && lost > 0:
		d = append(d, notice(fmt.Sprintf("the profiles have no device kernels or copies, though %s launched kernels: the profiler ended before it had them, or could not record the device",
			words.Counted(int(g.Unran.Launches), "call"))))
	case !g.Ran():
		d = append(d, notice("the profiles have no device kernels or copies: 'sgtrace report --nvtx' says how long ranges took, and --stacks what hosts did"))
	case 10*lost >= g.Unran.Launches && lost > 0:
		d = append(d, notice(fmt.Sprintf("%s of %s launched kernels that are not in the files: the profiler lost them, or ended before it had them; what the device did then is not known",
			words.Thousands(lost), words.Counted(int(g.Unran.Launches), "call"))))
	case len(g.Cuts) > 0:
		var of gpu.Unran
		var ranks []string
		for _, c := range g.Cuts {
			of.Launches, of.Lost, ranks = of.Launches+c.Launches, of.Lost+c.Lost, append(ranks, c.Rank)
		}
		d = append(d, notice(fmt.Sprintf("%s of %s of %s launched kernels that are not in the files: the profiler lost them, or ended before it had them; what these ranks did then is not known",
			words.Thousands(of.Lost), words.Counted(int(of.Launches), "call"), words.Some(ranks, 4))))
	}
	if ranks := g.Uncalled(); len(ranks) > 0 {
		d = append(d, notice(fmt.Sprintf("the files have only copies of %s, and neither kernels nor calls: what else ran there is not known", words.Some(ranks, 4))))
	}
	if 10*missing >= rows && missing > 0 {
		which, known := fmt.Sprintf("%.0f %% of", 100*distribution.Fraction(missing, rows)), "known only in part"
		if missing == rows {
			which, known = "all", "unknown"
		}
		text := fmt.Sprintf("the launch calls of %s kernels and copies are missing from the files, so why devices are idle is %s", which, known)
		if g.OnlyCommunication() {
			text = "the files have only communication kernels: what else devices ran at the same time or in between is unknown"
		}
		d = append(d, notice(text))
	}
	if ranks, at, before := g.EndEarly(); len(ranks) > 0 {
		text := "the recording of %s ends %s before those of most others, at %s: what it did afterward is not known"
		if len(ranks) > 1 {
			text = "the recordings of %s end up to %s before those of most others, from %s on: what these did afterward is not known"
		}
		d = append(d, notice(fmt.Sprintf(text, words.Some(ranks, 4), words.Nearly(before), words.At(at, words.ClockLayout))))
	}
	if part, which := g.Unclassified(); part >= muchUnclassified && (more || communicates(g)) {
		d = append(d, notice(which+"; the split between compute and communication may be wrong (--classes FILE)"))
	}
	return d
}

// communicates reports whether kernels may communicate: there are several devices, or one device that does. A single
// device has no peers, so kernels of unknown class on it compute.
func communicates(g *gpu.GPUs) bool {
	return len(g.GPUs) > 1 || slices.ContainsFunc(g.GPUs, func(d gpu.GPU) bool { return d.Time(kernelname.ClassCommunication) > 0 })
}

// lossWarnings are about ranks that are missing from collectives of all others, though they were recorded to the end.
func lossWarnings(c *collective.Collectives, g *gpu.GPUs) (d []document.Warning) {
	early, _, _ := g.EndEarly()
	for _, l := range c.Lacking(g) {
		if !slices.Contains(early, l.Rank) {
			d = append(d, notice(fmt.Sprintf("%s of %s of the other ranks are not in the capture of %s: the profiler lost them; its GPU is busier than that shows, and who waited for it is not known",
				words.Thousands(int64(l.N)), words.Counted(l.Of, "collective"), l.Rank)))
		}
	}
	return d
}

// hostOnlyWarnings are about ranks of which only the host was recorded, while devices of others were. Profilers write kernels
// last, so a file that was cut off may have none, and tables of devices leave its rank out.
func hostOnlyWarnings(set *profile.Set, g *gpu.GPUs) []document.Warning {
	silent := map[int32]bool{}
	for i, number := range set.Numbers {
		if number >= 0 {
			silent[int32(i)] = true
		}
	}
	for i := range g.GPUs {
		delete(silent, g.GPUs[i].RankIndex)
	}
	var hosts []int32
	for _, s := range set.Streams {
		if len(silent) == 0 {
			break
		}
		s.Frames(func(f *profile.Frame) bool {
			if silent[f.Rank] {
				hosts = append(hosts, f.Rank)
				delete(silent, f.Rank)
			}
			return len(silent) > 0
		})
	}
	slices.Sort(hosts)
	ranks := order.EachRow(hosts, func(i *int32) string { return set.Ranks[*i] })
	switch len(ranks) {
	case 0:
		return nil
	case 1:
		return []document.Warning{notice(fmt.Sprintf("the capture of %s has no kernels or copies, unlike those of other ranks: what its GPU did is not known", ranks[0]))}
	}
	return []document.Warning{notice(fmt.Sprintf("the captures of %s have no kernels or copies, unlike those of other ranks: what their GPUs did is not known", words.Some(ranks, 4)))}
}
