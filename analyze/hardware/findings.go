package hardware

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// reasons are the bits of DCGM_FI_DEV_CLOCKS_EVENT_REASONS, worst first. Bits that others follow from
// come behind these.
var reasons = []struct {
	bit  uint64
	text string
}{
	{0x40, "thermal slowdown by hardware"}, {0x80, "power brake by hardware"}, {0x20, "thermal slowdown by software"}, {0x8, "slowdown by hardware"},
	{0x4, "limit of power"}, {0x10, "sync boost with another GPU"}, {0x2, "clocks that applications set"},
}

// why says what bits mean; "" is nothing.
func why(bits uint64) string {
	var parts []string
	for _, r := range reasons {
		if bits&r.bit != 0 && !(r.bit == 0x8 && bits&0xc0 != 0) {
			parts = append(parts, r.text)
		}
	}
	return strings.Join(parts, ", ")
}

// name returns the usual name of a GPU.
func (d *Device) name() string { return series.Device(d.Host, d.UUID, d.GPU) }

// ClockSubkind is that of findings of clocks.
const ClockSubkind = "clock"

// Clocks returns findings of GPUs that are slower than their peers. Ranks that were recorded may tell what
// they are used for.
func Clocks(set *series.Set, uses []Use) ([]finding.Finding, finding.Check) {
	devices := devices(set)
	join(devices, uses)
	check := finding.Check{What: "clocks of GPUs against those of their peers", Of: "GPU", Needed: fewPeers + 1}
	for _, d := range devices {
		if len(d.clock) > 0 {
			check.N++
		}
	}
	if check.N == 0 {
		check.Reason = "no metrics have the clocks of GPUs"
	}
	from, to, _ := set.Bounds()
	var list []finding.Finding
	slow := Slower(devices)
	for _, s := range slow {
		list = append(list, s.finding(len(devices), from, to))
	}
	for _, b := range Brakes(devices, slow) {
		list = append(list, b.finding(len(devices), from, to))
	}
	return list, check
}

func (s *Slow) finding(devices int, from, to trace.Time) finding.Finding {
	last := to
	if s.Until != 0 {
		last = s.Until
	}
	f := finding.Finding{Subkind: ClockSubkind, Since: s.Since, Until: s.Until, At: at(s.Device), CostBasis: finding.GPUTime, Confidence: finding.Likely,
		Metric: finding.Metric{Name: "SM clock in MHz", Before: s.Peers, After: s.Clock}}
	of := s.Device.name()
	if u := s.Device.use; u != nil {
		of = u.Rank + "'s GPU"
		if s.during() {
			host := f.At.Host
			f.At = place.Named(u.Rank)
			f.At.Host = host
		}
	}
	f.Text = fmt.Sprintf("the SM clock of %s was %s MHz, %s %s, since %s", of, number(s.Clock), peers(s.Others), number(s.Peers), words.At(s.Since, "15:04:05"))
	if s.Until != 0 {
		f.Text += " until " + words.At(s.Until, "15:04:05")
	}
	if text := why(s.Reasons); text != "" {
		f.Text += ": " + text
		f.Confidence = finding.Certain
	}
	if to > from && devices > 0 {
		f.Cost = (1 - s.Clock/s.Peers) * float64(last-s.Since) / float64(to-from) / float64(devices)
	}
	say := func(format string, args ...any) { f.Evidence = append(f.Evidence, finding.Sentence(format, args...)) }
	say("%s in a row, one every %s; it may have begun that much earlier", words.Counted(s.N, "scrape"), s.Every)
	switch {
	case s.Known && why(s.Reasons) == "":
		say("its throttle reasons name none: an application may have set its clock, or it is another model")
	case !s.Known:
		say("no metrics have its throttle reasons: DCGM_FI_DEV_CLOCKS_EVENT_REASONS would tell why")
	}
	if !s.Work && !s.Known {
		f.Confidence = finding.Likely
		say("no metrics tell whether it worked: idle GPUs lower their clocks")
	}
	switch u := s.Device.use; {
	case u != nil && s.during():
		say("it is %s: recordings and metrics are joined by %s", s.Device.name(), s.Device.by)
	case u != nil:
		say("it is %s: recordings and metrics are joined by %s; %s was recorded at another time, from %s to %s", s.Device.name(), s.Device.by,
			u.Rank, words.At(u.From, "15:04:05"), words.At(u.To, "15:04:05"))
	case s.Device.UUID != "":
		say("it is known by its UUID, %s", s.Device.UUID)
	default:
		say("it is known by its index on the host alone")
	}
	return f
}

// peers says whose clocks are others.
func peers(n int) string {
	if n == 1 {
		return "that of its only peer"
	}
	return fmt.Sprintf("that of its %d peers", n)
}

// at returns where a GPU is: its pod, which logs call as metrics do, if that is known.
func at(d *Device) place.Location {
	w := place.Device(d.name())
	w.Host = d.User
	return w
}

func number(v float64) string { return words.Thousands(int64(v + 0.5)) }

// fatal are Xid codes after which a GPU, or what runs on it, does not go on; others are mostly of
// the program itself.
var fatal = map[int]string{
	48: "double-bit ECC error", 62: "internal micro-controller halt", 64: "ECC page retirement failed", 74: "NVLink error", 79: "GPU has fallen off the bus", 94: "contained ECC error",
	95: "uncontained ECC error", 119: "GSP timeout", 120: "GSP error", 140: "unrecovered ECC error", 143: "GPU initialization failed", 144: "NVLink error", 145: "NVLink error", 146: "NVLink error",
	147: "NVLink error", 148: "NVLink error", 149: "NVLink error", 150: "NVLink error",
}

// ofDevice are Xid codes that are of the GPU, too, but after which it goes on, and what they mean.
var ofDevice = map[int]string{
	63:  "a row of its memory is replaced, which takes effect when the GPU is reset",
	92:  "its memory has many errors that are corrected",
	154: "the driver says what the GPU needs to recover",
}

// soon is how much later metrics may have what a kernel said: they keep the last error, and are looked
// at now and then.
const soon = trace.Time(120e9)

// nonfatal is what the driver calls an error of a link behind which the GPU goes on.
const nonfatal = "Nonfatal "

// Errors returns findings of GPUs, of the switches between them, and of network devices and PCIe, that report errors.
func Errors(set *series.Set) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "errors that drivers report of GPUs and networks", Of: "error", Needed: 0}
	type key struct {
		place int32
		text  trace.Sym
	}
	from, to, _ := set.Bounds()
	devices := len(devices(set))
	scraped := set.LastErrors()
	first := map[key]int{}
	var list []finding.Finding
	var counts []int
	for i := range set.Instants {
		x := &set.Instants[i]
		code := 0
		text := set.Syms.Name(x.Text)
		if x.Kind != series.Hardware {
			continue
		}
		rest, ofSwitch := strings.CutPrefix(text, "S")
		if _, err := fmt.Sscanf(rest, "Xid %d", &code); err != nil {
			continue
		}
		check.N++
		k, ok := first[key{x.Place, x.Text}]
		if !ok {
			if k, ok = saidBefore(set, x, fmt.Sprintf("Xid %d", code), list); ok {
				first[key{x.Place, x.Text}] = k
				continue
			}
			f := xid(set, x, code, text)
			f.Evidence = append(f.Evidence, notBefore(x, scraped[x.Place])...)
			if k, ok = lostBefore(x, text, list); ok {
				list[k].Evidence = append(list[k].Evidence, finding.Sentence("then: %s", f.Text))
				first[key{x.Place, x.Text}] = -1
				continue
			}
			k = len(list)
			first[key{x.Place, x.Text}] = k
			if fatal[code] != "" && !ofSwitch && !strings.Contains(text, nonfatal) && x.Time != 0 && to > from { // it is lost from then on
				f.Cost = float64(to-x.Time) / float64(to-from) / float64(max(1, devices))
			}
			list = append(list, f)
			counts = append(counts, 0)
		}
		if k >= 0 {
			counts[k] += int(max(1, x.Count))
		}
	}
	watched := slices.ContainsFunc(set.List, func(x series.Series) bool { return x.Metric == series.Xid })
	if check.N == 0 && !watched && !slices.ContainsFunc(set.Instants, func(x series.Instant) bool { return x.Kind == series.Hardware }) {
		check.Reason = "no input reports errors of GPUs"
	}
	for i := range counts {
		if counts[i] > 1 {
			list[i].Evidence = append(list[i].Evidence, finding.Sentence("it was reported %d times", counts[i]))
		}
	}
	others := append(kept(set, scraped), faults(set)...)
	check.N += len(others)
	return append(list, others...), check
}

// notBefore tells when metrics did not yet have an error, where that is long before they had it.
func notBefore(x *series.Instant, scraped []series.Sample) []finding.Evidence {
	k := slices.IndexFunc(scraped, func(s series.Sample) bool { return s.Time >= x.Time })
	if k < 1 || scraped[k].Time != x.Time || x.Time-scraped[k-1].Time <= soon {
		return nil
	}
	return []finding.Evidence{finding.Sentence("it happened since %s: that scrape does not have it", words.At(scraped[k-1].Time, "15:04:05"))}
}

// kept returns findings of fatal errors that metrics have from their first scrape on.
func kept(set *series.Set, scraped map[int32][]series.Sample) (list []finding.Finding) {
	for _, place := range slices.Sorted(maps.Keys(scraped)) {
		if len(scraped[place]) == 0 {
			continue
		}
		s := scraped[place][0]
		if fatal[int(s.Value)] == "" {
			continue
		}
		f := xid(set, &series.Instant{Place: place}, int(s.Value), fmt.Sprintf("Xid %.0f", s.Value))
		f.Text += ", before " + words.At(s.Time, "15:04:05")
		f.Confidence = finding.Likely
		f.Evidence = append(f.Evidence, finding.Sentence("the first scrape has it already: metrics keep the last error until the driver is loaded again, so it may be long past"))
		list = append(list, f)
	}
	return list
}

// lostBefore looks for the error with which a GPU was lost: what the driver says of it within some minutes follows from that.
func lostBefore(x *series.Instant, text string, list []finding.Finding) (k int, ok bool) {
	const minutes = trace.Time(600e9)
	_, of, named := strings.Cut(text, " of GPU ")
	of, _, _ = strings.Cut(of, ": ")
	for k := range list {
		f := &list[k]
		code := 0
		_, err := fmt.Sscanf(f.Subkind, "Xid %d", &code)
		if named && err == nil && fatal[code] != "" && !strings.Contains(f.Text, nonfatal) && x.Time-f.Since <= minutes && strings.Contains(f.Text+" ", " of GPU "+of) {
			return k, true
		}
	}
	return 0, false
}

// saidBefore looks for what the kernel of a host said by the bus of a GPU, of which metrics have the same
// by its number: of one such, it is that one.
func saidBefore(set *series.Set, x *series.Instant, subkind string, list []finding.Finding) (k int, ok bool) {
	p := &set.Places[x.Place]
	if p.GPU < 0 {
		return 0, false
	}
	n := 0
	d := &Device{Host: set.Servers[p.Server].Host, UUID: p.UUID, User: p.User, GPU: p.GPU}
	for i := range list {
		if f := &list[i]; f.Subkind == subkind && strings.HasSuffix(strings.Split(f.Text, " at ")[0], " on "+d.Host) && x.Time >= f.Since && x.Time-f.Since <= soon {
			k, n = i, n+1
		}
	}
	if n != 1 {
		return 0, false
	}
	if list[k].At.Host == "" {
		list[k].At.Host = d.User
		list[k].Evidence = append(list[k].Evidence, finding.Sentence("metrics have it, too: it is %s", d.name()))
	}
	return k, true
}

func xid(set *series.Set, x *series.Instant, code int, text string) finding.Finding {
	p := &set.Places[x.Place]
	d := &Device{Host: set.Servers[p.Server].Host, UUID: p.UUID, User: p.User, GPU: p.GPU}
	where := d.name()
	if d.GPU < 0 && d.UUID == "" {
		where = d.Host
	}
	kind := strings.Fields(text)[0]
	f := finding.Finding{Subkind: fmt.Sprintf("%s %d", kind, code), Since: x.Time, CostBasis: finding.GPUTime, Confidence: finding.Certain, At: place.Device(where)}
	f.At.Host = d.User
	f.Text = text
	if where != "" {
		f.Text += " on " + where
	}
	if x.Time != 0 {
		f.Text += " at " + words.At(x.Time, "15:04:05")
	}
	switch means := fatal[code]; {
	case strings.Contains(text, nonfatal):
		f.Evidence = append(f.Evidence, finding.Sentence("the driver calls it nonfatal: the GPU goes on"))
		f.Confidence = finding.Likely
	case kind == "SXid" && strings.Contains(strings.ToLower(text), ": fatal"):
		f.Text += ": the switch and its GPUs need a reset"
	case kind == "SXid":
		f.Evidence = append(f.Evidence, finding.Sentence("the driver does not call it fatal: the switch goes on"))
		f.Confidence = finding.Likely
	case means != "" && !strings.Contains(text, means):
		f.Text += ": " + means
	case ofDevice[code] != "":
		f.Evidence = append(f.Evidence, finding.Sentence("%s", ofDevice[code]))
	case means == "":
		f.Evidence = append(f.Evidence, finding.Sentence("such an error is mostly of the program itself, or follows from another one"))
		f.Confidence = finding.Likely
	}
	return f
}
