package hardware

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// HostSubkind begins the subkinds of findings about hosts.
const HostSubkind = "host "

// Subkinds of findings about hosts whose network loses what they send, and whose links fail.
const (
	LossyNetwork = HostSubkind + "network"
	FailingLink  = HostSubkind + "link"
)

// A counter is a counter of node exporter or cAdvisor: all series of a name, or only those with one
// label, or without some.
type counter struct {
	name    string
	with    string    // "mode=steal"; "" is any
	without [3]string // "" is none
}

// takes reports whether series of the name with these labels belong to the counter.
func (c *counter) takes(set *series.Set, labels trace.Sym) bool {
	has := func(label string) bool { return set.HasLabel(labels, label) }
	return (c.with == "" || has(c.with)) && !slices.ContainsFunc(c.without[:], func(label string) bool { return label != "" && has(label) })
}

// A shortage is something that a host, or a pod, may be short of. It is the growth of one counter, as a
// share of the growth of others, or of time if there are no others.
type shortage struct {
	subkind, text string // in text, %[1]s is who and %[2]s the share in %
	of            counter
	all           []counter
	// least is the share from which on it matters. If threads wait for a quarter of the time, computing
	// takes a third longer. A loss of 1 % keeps a TCP connection from having more than a dozen segments in
	// flight (the throughput by Mathis, Semke, Mahdavi, and Ott is 1.2 segments per round trip, divided by
	// the root of the loss). Threads wait for each other where CPUs are busy nine tenths of the time.
	least float64
}

var shortages = []shortage{
	{"CPU", "threads on %[1]s wait for a CPU for %[2]s %% of the time in which they could run", counter{name: "node_schedstat_waiting_seconds_total"},
		[]counter{{name: "node_schedstat_waiting_seconds_total"}, {name: "node_schedstat_running_seconds_total"}}, 0.25},
	{"CPU", "the CPUs of %[1]s are busy for %[2]s %% of the time", counter{name: "node_cpu_seconds_total", without: [3]string{"mode=idle", "mode=iowait", "mode=steal"}},
		[]counter{{name: "node_cpu_seconds_total", without: [3]string{"mode=steal"}}}, 0.9},
	{"CPU limit", "the CPU limit of %[1]s stops it in %[2]s %% of its periods", counter{name: "container_cpu_cfs_throttled_periods_total"},
		[]counter{{name: "container_cpu_cfs_periods_total"}}, 0.25},
	{"steal", "other virtual machines have the CPUs of %[1]s for %[2]s %% of the time (steal)", counter{name: "node_cpu_seconds_total", with: "mode=steal"},
		[]counter{{name: "node_cpu_seconds_total"}}, 0.05},
	{"memory", "everything on %[1]s stalls for %[2]s %% of the time, waiting for memory", counter{name: "node_pressure_memory_stalled_seconds_total"}, nil, 0.1},
	{"disk", "everything on %[1]s stalls for %[2]s %% of the time, waiting for disks", counter{name: "node_pressure_io_stalled_seconds_total"}, nil, 0.25},
	{"network", "%[1]s sends %[2]s %% of its TCP segments again: they are lost on the way", counter{name: "node_netstat_Tcp_RetransSegs"},
		[]counter{{name: "node_netstat_Tcp_OutSegs"}}, 0.01},
}

// A mishap is a counter of something that must not happen at all, or hardly ever.
type mishap struct {
	subkind, text, unit string // in text, %[1]s is the host and %[2]s how many of the unit
	of                  counter
	hourly              float64 // how many per hour are usual
}

// symbolErrors is the most symbols per hour that a sound InfiniBand link gets wrong: one bit in 10^12, as its specification allows.
const symbolErrors = 120

// replays is the most packets per hour that a sound PCIe link repeats, at one wrong bit in 10^12 and 512 Gbit/s.
const replays = 1850

var mishaps = []mishap{
	{"killed", "the kernel of %[1]s kills %[2]s because memory ran out", "process", counter{name: "node_vmstat_oom_kill"}, 0},
	{"link", "InfiniBand links of %[1]s go down %[2]s", "time", counter{name: "node_infiniband_link_downed_total"}, 0},
	{"link", "InfiniBand links of %[1]s recover %[2]s from errors, and pass nothing on meanwhile", "time", counter{name: "node_infiniband_link_error_recovery_total"}, 0},
	{"link", "InfiniBand links of %[1]s get %[2]s wrong", "symbol", counter{name: "node_infiniband_symbol_error_total"}, symbolErrors},
	{"link", "InfiniBand ports of %[1]s receive %[2]s with errors", "packet", counter{name: "node_infiniband_port_errors_received_total"}, symbolErrors},
	{"PCIe", "PCIe links of GPUs of %[1]s repeat %[2]s", "packet", counter{name: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"}, replays},
}

// A hostOrPod is a host, or a pod on it.
type hostOrPod struct{ host, pod string }

// A step is how much a counter grew from one scrape to the next.
type step struct {
	from, to trace.Time
	grew     float64
}

// growth returns how much the counters of a name grow together from scrape to scrape, by host or pod.
func growth(set *series.Set, of counter) map[hostOrPod][]step {
	by := map[hostOrPod]map[trace.Time]*step{}
	for i := range set.List {
		x := &set.List[i]
		if set.Metric(x.Metric).Name != of.name || !of.takes(set, x.Label) {
			continue
		}
		p := &set.Places[x.Place]
		w := hostOrPod{set.Servers[p.Server].Host, p.User}
		if by[w] == nil {
			by[w] = map[trace.Time]*step{}
		}
		var last series.Sample
		for s := range set.Each(i) {
			before := last
			if last = s; before.Time == 0 || s.Time <= before.Time || s.Value < 0 {
				continue
			}
			at := order.Memo(by[w], s.Time, func() *step { return &step{from: before.Time, to: s.Time} })
			at.grew += series.Growth(before.Value, s.Value)
		}
	}
	out := map[hostOrPod][]step{}
	for w, steps := range by {
		for _, s := range steps {
			out[w] = append(out[w], *s)
		}
		slices.SortFunc(out[w], func(a, b step) int { return cmp.Compare(a.to, b.to) })
	}
	return out
}

// Hosts returns findings about hosts that are short of CPU, memory, or disk, or whose network loses
// what they send, and about pods that their limits hold back.
func Hosts(set *series.Set) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "hosts and limits of pods", Of: "host", Needed: 1}
	seen := map[string]bool{}
	grown := map[counter]map[hostOrPod][]step{}
	grew := func(of counter) map[hostOrPod][]step {
		if grown[of] == nil {
			grown[of] = growth(set, of)
			for w := range grown[of] {
				seen[w.host] = true
			}
		}
		return grown[of]
	}
	var list []finding.Finding
	for i := range shortages {
		s := &shortages[i]
		of := grew(s.of)
		for _, w := range slices.SortedFunc(maps.Keys(of), byName) {
			list = append(list, s.find(w, of[w], func(c counter) []step { return grew(c)[w] })...)
		}
	}
	for i := range mishaps {
		m := &mishaps[i]
		of := grew(m.of)
		for _, w := range slices.SortedFunc(maps.Keys(of), byName) {
			if f, ok := m.find(w, of[w]); ok {
				list = append(list, f)
			}
		}
	}
	list = append(list, lefts(set)...)
	from, to, _ := set.Bounds()
	for i := range list {
		f := &list[i]
		if to > from {
			f.Cost *= 1 / float64(to-from) / float64(max(1, len(seen)))
		}
		if pods := on(set, f.At.Host); len(pods) == 1 {
			f.At.Host = pods[0] // the name that logs use
			f.Evidence = append(f.Evidence, finding.Sentence("on it is %s", pods[0]))
		} else if len(pods) > 1 {
			f.Evidence = append(f.Evidence, finding.Sentence("on it are %s", words.Some(pods, 8)))
		}
	}
	if check.N = len(seen); check.N == 0 {
		check.Reason = "no metrics are of hosts"
	}
	return list, check
}

// on returns the servers of a host, and its pods that have a GPU.
func on(set *series.Set, host string) (pods []string) {
	add := func(name string) {
		if name != "" && name != host && !slices.Contains(pods, name) {
			pods = append(pods, name)
		}
	}
	for i := range set.Servers {
		if x := &set.Servers[i]; x.On(host) {
			add(x.Name)
		}
	}
	for i := range set.Places {
		if p := &set.Places[i]; p.IsDevice() && host != "" && set.Servers[p.Server].Host == host {
			add(p.User)
		}
	}
	slices.Sort(pods)
	return pods
}

func byName(a, b hostOrPod) int {
	return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.pod, b.pod))
}

// called returns the usual name of a host or a pod.
func (w hostOrPod) called() string { return cmp.Or(w.pod, w.host, "a host") }

func (w hostOrPod) at() place.Location {
	at := place.Device(w.called())
	at.Host = w.called()
	return at
}

// find finds the times in which a counter grows too much. The cost is in ns of the time of one host.
func (s *shortage) find(w hostOrPod, of []step, growthOf func(counter) []step) (list []finding.Finding) {
	all := map[trace.Time]float64{}
	for _, c := range s.all {
		for _, x := range growthOf(c) {
			all[x.to] += x.grew
		}
	}
	var run []step
	part := 0.0           // share of the run's time, times that time
	less := trace.Time(0) // since when it grows less; 0 is not
	end := func() {
		if len(run) >= fewest {
			list = append(list, s.finding(w, run, part, less))
		}
		run, part, less = run[:0], 0, 0
	}
	for _, x := range of {
		whole := float64(x.to-x.from) / 1e9
		if s.all != nil {
			whole = all[x.to]
		}
		share := x.grew / whole
		switch {
		case whole > 0 && share >= s.least:
			run, part, less = append(run, x), part+min(1, share)*float64(x.to-x.from), 0
		case less == 0: // once means nothing: a counter may have been reset
			less = x.from
		default:
			end()
		}
	}
	end()
	return list
}

func (s *shortage) finding(w hostOrPod, run []step, part float64, until trace.Time) finding.Finding {
	from, to, known := run[0].from, run[len(run)-1].to, trace.Time(0)
	for _, x := range run {
		known += x.to - x.from
	}
	share := part / float64(known)
	f := finding.Finding{Subkind: HostSubkind + s.subkind, At: w.at(), Since: from, Within: run[0].to - run[0].from, Until: until, Cost: part, Confidence: finding.Certain,
		Metric: finding.Metric{Name: s.of.name, After: share}}
	f.Text = fmt.Sprintf(s.text, w.called(), words.InPercent(share)) + ", since " + words.At(from, "15:04:05")
	if until != 0 {
		f.Text += " until " + words.At(until, "15:04:05")
	}
	f.Evidence = []finding.Evidence{finding.Sentence("%s of %s in a row, one every %s", words.Counted(len(run), "scrape"), s.of.name, time.Duration((to-from)/trace.Time(len(run))).Round(time.Second))}
	return f
}

// find returns a finding if a counter grew by more than is usual.
func (m *mishap) find(w hostOrPod, of []step) (f finding.Finding, ok bool) {
	n := 0.0
	var first, last step
	for _, x := range of {
		if x.grew > 0 {
			if n += x.grew; first.to == 0 {
				first = x
			}
			last = x
		}
	}
	if n <= m.hourly*time.Duration(last.to-first.from).Hours() {
		return f, false
	}
	f = finding.Finding{Subkind: HostSubkind + m.subkind, At: w.at(), Since: first.from, Until: last.to, Cost: float64(last.to - first.from), Confidence: finding.Certain,
		Metric: finding.Metric{Name: m.of.name, After: n}}
	f.Text = fmt.Sprintf(m.text, w.called(), words.Counted(int(n+0.5), m.unit)) + " between " + words.At(first.from, "15:04:05") + " and " + words.At(last.to, "15:04:05")
	f.Evidence = []finding.Evidence{finding.Sentence("%s counts them", m.of.name)}
	return f, true
}

// A level is something of which a host or a container has little left: it compares what is used, or what is free, with all that there is.
type level struct {
	subkind, text string // in text, %[1]s is who, %[2]s the rest, %[3]s all of it, and %[4]s the labels of the series
	of, all       string
	free          bool // of is what is free, and not what is used
	// least is the remaining share below which it is reported: the kernel kills what uses more than it
	// may, and writes to a full disk fail.
	least float64
}

var levels = []level{
	{"memory limit", "%[1]s has %[2]s left of the %[3]s of memory that it may use", "container_memory_working_set_bytes", "container_spec_memory_limit_bytes", false, 0.05},
	{"memory", "%[1]s has %[2]s left of its %[3]s of memory", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes", true, 0.02},
	{"disk space", "%[1]s has %[2]s left of %[3]s on %[4]s", "node_filesystem_avail_bytes", "node_filesystem_size_bytes", true, 0.01},
}

// lefts finds what is nearly used up in the last samples of its metrics.
func lefts(set *series.Set) (list []finding.Finding) {
	for k := range levels {
		x := &levels[k]
		for i := range set.List {
			if set.Metric(set.List[i].Metric).Name != x.of {
				continue
			}
			for o := range set.List {
				if set.Metric(set.List[o].Metric).Name == x.all && set.List[o].Place == set.List[i].Place && set.List[o].Label == set.List[i].Label {
					if f, ok := x.find(set, i, o); ok {
						list = append(list, f)
					}
				}
			}
		}
	}
	return list
}

// find reports whether too little is left in the last samples of two series, and since when.
func (x *level) find(set *series.Set, of, all int) (f finding.Finding, ok bool) {
	var most []series.Sample
	for s := range set.Each(all) {
		most = append(most, s)
	}
	const unlimited = 1 << 60
	var first, last float64   // remaining shares
	var since, end trace.Time // since when too little is left, and the last sample
	left, n := 0.0, 0
	for s := range set.Each(of) {
		end = s.Time
		total, ok := valueAt(most, s.Time, spacing(most))
		if !ok && len(most) == 1 {
			total, ok = most[0].Value, true
		}
		if !ok || total <= 0 || total >= unlimited {
			continue
		}
		if left = s.Value; !x.free {
			left = max(0, total-s.Value)
		}
		if last = left / total; n == 0 {
			first = last
		}
		if n++; last >= x.least {
			since = 0
		} else if since == 0 {
			since = s.Time
		}
	}
	if since == 0 {
		return f, false
	}
	p := &set.Places[set.List[of].Place]
	w := hostOrPod{set.Servers[p.Server].Host, p.User}
	f = finding.Finding{Subkind: HostSubkind + x.subkind, At: w.at(), Since: since, Confidence: finding.Certain, Metric: finding.Metric{Name: x.of, Before: 1 - first, After: 1 - last}}
	total := most[len(most)-1].Value
	f.Text = fmt.Sprintf(x.text, w.called(), words.Size(int64(left)), words.Size(int64(total)), strings.ReplaceAll(set.Syms.Name(set.List[of].Label), ",", ", "))
	f.Text = strings.TrimSuffix(f.Text, " on ")
	if n == 1 {
		f.Text += " at " + words.At(since, "15:04:05")
		f.Evidence = append(f.Evidence, finding.Sentence("its metrics are from one moment: they do not say since when"))
		return f, true
	}
	f.Text += ", since " + words.At(since, "15:04:05")
	f.Evidence = append(f.Evidence, finding.Sentence("it had %s %% left at first, and has %s %% at last", words.InPercent(first), words.InPercent(last)))
	if _, to, _ := set.Bounds(); to-end > 2*trace.Time(spacing(most)) && len(most) > 1 {
		f.Evidence = append(f.Evidence, finding.Sentence("it has no metrics since %s, while others go on: it ended or was killed", words.At(end, "15:04:05")))
	}
	return f, true
}
