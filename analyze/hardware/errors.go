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

// fatal are Xid codes after which a GPU, or what runs on it, cannot go on. Most others come from the
// program itself.
var fatal = map[int]string{
	48: "double-bit ECC error", 62: "internal micro-controller halt", 64: "ECC page retirement failed", 74: "NVLink error", 79: "GPU has fallen off the bus", 94: "contained ECC error",
	95: "uncontained ECC error", 119: "GSP timeout", 120: "GSP error", 140: "unrecovered ECC error", 143: "GPU initialization failed", 144: "NVLink error", 145: "NVLink error", 146: "NVLink error",
	147: "NVLink error", 148: "NVLink error", 149: "NVLink error", 150: "NVLink error",
}

// ofDevice are Xid codes that also concern the GPU, but after which it goes on, and what they mean.
var ofDevice = map[int]string{
	63:  "a row of its memory is replaced, which takes effect when the GPU is reset",
	92:  "its memory has many errors that are corrected",
	154: "the driver says what the GPU needs to recover",
}

// soon is how much later than the kernel log metrics may show an error: they keep only the last one,
// and are scraped now and then.
const soon = trace.Time(120e9)

// nonfatal is what the driver calls an error of a link after which the GPU goes on.
const nonfatal = "Nonfatal "

// A driverError is an error of a GPU that its driver numbers (an Xid), or of a switch between GPUs (an SXid).
type driverError struct {
	at       trace.Time // Unix ns; 0 is unknown
	code     int
	ofSwitch bool
	text     string // as the driver says it, from its number on
	bus      string // the PCI bus of the GPU, as a kernel names it; "" in metrics
	server   int32  // that reports it, an index into [series.Set.Servers]
	device   Device // without a number and a UUID if only its bus is known
}

// driverErrorOf reads an error from an instant; ok is false if the instant is something else.
func driverErrorOf(set *series.Set, x *series.Instant) (e driverError, ok bool) {
	e = newDriverError(set, x.Place)
	e.at, e.text = x.Time, set.Syms.Name(x.Text)
	rest, ofSwitch := strings.CutPrefix(e.text, "S")
	e.ofSwitch = ofSwitch
	_, err := fmt.Sscanf(rest, "Xid %d", &e.code)
	_, of, _ := strings.Cut(e.text, " of GPU ")
	e.bus, _, _ = strings.Cut(of, ": ")
	return e, x.Kind == series.Hardware && err == nil
}

// newDriverError returns an error that was reported for a place.
func newDriverError(set *series.Set, place int32) driverError {
	p := &set.Places[place]
	return driverError{server: p.Server, device: Device{Host: set.Servers[p.Server].Host, UUID: p.UUID, User: p.User, GPU: p.GPU}}
}

// isNonfatal reports whether the driver calls the error nonfatal, so that the GPU goes on.
func (e *driverError) isNonfatal() bool { return strings.Contains(e.text, nonfatal) }

// isLoss reports whether the GPU is lost.
func (e *driverError) isLoss() bool { return fatal[e.code] != "" && !e.ofSwitch && !e.isNonfatal() }

// isOfProgram reports whether such an error usually comes from the program that runs on the GPU.
func (e *driverError) isOfProgram() bool {
	return fatal[e.code] == "" && ofDevice[e.code] == "" && !e.ofSwitch
}

// known reports whether it is known which GPU of its host has the error, not only which bus.
func (e *driverError) known() bool { return e.device.GPU >= 0 || e.device.UUID != "" }

// A reported is an error, with the finding about it.
type reported struct {
	driverError
	finding finding.Finding
	times   int // how often it was reported
}

// Errors returns findings about errors of GPUs, of the switches between them, and of network devices and PCIe.
func Errors(set *series.Set) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "errors that drivers report of GPUs and networks", Of: "error", Needed: 0}
	type key struct {
		place int32
		text  trace.Sym
	}
	from, to, _ := set.Bounds()
	devices := len(devices(set))
	scraped := set.LastErrors()
	first := map[key]int{} // indices into list; -1 is a consequence of another error
	var list []reported
	for i := range set.Instants {
		x := &set.Instants[i]
		e, ok := driverErrorOf(set, x)
		if !ok {
			continue
		}
		check.N++
		said := key{x.Place, x.Text}
		k, ok := first[said]
		if !ok {
			if k, ok = saidBefore(list, &e); ok {
				first[said] = k
				continue
			}
			f := e.finding()
			f.Evidence = append(f.Evidence, notBefore(x, scraped[x.Place])...)
			if k, ok = follows(list, &e); ok {
				if list[k].code == e.code { // reported for another channel
					first[said], list[k].times = k, list[k].times+int(max(1, x.Count))
					continue
				}
				list[k].finding.Evidence = append(list[k].finding.Evidence, finding.Sentence("then: %s", f.Text))
				first[said] = -1
				continue
			}
			f.Cost = e.loss(from, to, devices)
			if k, ok = announced(list, &e); ok {
				f.Evidence = append(f.Evidence, finding.Sentence("along with it: %s", list[k].finding.Text))
				maps.DeleteFunc(first, func(_ key, of int) bool { return of == k })
				list[k] = reported{driverError: e, finding: f}
			} else {
				k = len(list)
				list = append(list, reported{driverError: e, finding: f})
			}
			first[said] = k
		}
		if k >= 0 {
			list[k].times += int(max(1, x.Count))
		}
	}
	watched := slices.ContainsFunc(set.List, func(x series.Series) bool { return x.Metric == series.Xid })
	if check.N == 0 && !watched && !slices.ContainsFunc(set.Instants, func(x series.Instant) bool { return x.Kind == series.Hardware }) {
		check.Reason = "no input reports errors of GPUs"
	}
	others := append(kept(set, scraped), faults(set)...)
	check.N += len(others)
	return append(told(list), others...), check
}

// told returns the findings about errors, and says in each how often it was reported.
func told(list []reported) (found []finding.Finding) {
	for i := range list {
		if n := list[i].times; n > 1 {
			list[i].finding.Evidence = append(list[i].finding.Evidence, finding.Sentence("it was reported %d times", n))
		}
		found = append(found, list[i].finding)
	}
	return found
}

// notBefore says when metrics did not have an error yet, if that is long before they first had it.
func notBefore(x *series.Instant, scraped []series.Sample) []finding.Evidence {
	k := slices.IndexFunc(scraped, func(s series.Sample) bool { return s.Time >= x.Time })
	if k < 1 || scraped[k].Time != x.Time || x.Time-scraped[k-1].Time <= soon {
		return nil
	}
	return []finding.Evidence{finding.Sentence("it happened since %s: that scrape does not have it", words.At(scraped[k-1].Time, "15:04:05"))}
}

// kept returns findings about fatal errors that metrics have had since their first scrape.
func kept(set *series.Set, scraped map[int32][]series.Sample) (list []finding.Finding) {
	for _, place := range slices.Sorted(maps.Keys(scraped)) {
		if len(scraped[place]) == 0 {
			continue
		}
		s := scraped[place][0]
		e := newDriverError(set, place)
		if e.code = int(s.Value); fatal[e.code] == "" {
			continue
		}
		e.text = e.subkind()
		f := e.finding()
		f.Text += ", before " + words.At(s.Time, "15:04:05")
		f.Confidence = finding.Likely
		f.Evidence = append(f.Evidence, finding.Sentence("the first scrape has it already: metrics keep the last error until the driver is loaded again, so it may be long past"))
		list = append(list, f)
	}
	return list
}

// follows looks for the error that another one is a consequence of: the driver names it, or the GPU was lost with it, minutes
// ago at most; or it was the program's own, and so is what else is reported of the program on that GPU.
func follows(list []reported, e *driverError) (k int, ok bool) {
	const minutes = trace.Time(600e9)
	k = slices.IndexFunc(list, func(o reported) bool {
		switch named := strings.HasSuffix(e.text, fmt.Sprintf("caused by previous Xid %d", o.code)); {
		case o.server != e.server || e.at-o.at > minutes:
			return false
		case named || e.bus == "" || o.bus != e.bus:
			return named
		}
		return o.isLoss() || e.isOfProgram() && o.isOfProgram() && e.at-o.at <= soon
	})
	return k, k >= 0
}

// announced looks for what the driver said about a GPU right before the error with which it lost the
// GPU: that a row of memory is replaced, say, follows from the same failure.
func announced(list []reported, e *driverError) (k int, ok bool) {
	const exact = trace.Time(2e9)
	if !e.isLoss() || e.bus == "" || e.at == 0 {
		return 0, false
	}
	k = slices.IndexFunc(list, func(o reported) bool {
		return o.bus == e.bus && o.server == e.server && ofDevice[o.code] != "" && !o.ofSwitch && e.at-o.at <= exact
	})
	return k, k >= 0
}

// loss returns the share of the time of all GPUs that is lost with one GPU since an error; 0 is unknown, as is the number of
// GPUs without metrics.
func (e *driverError) loss(from, to trace.Time, devices int) float64 {
	if !e.isLoss() || e.at == 0 || to <= from || devices == 0 {
		return 0
	}
	return float64(to-e.at) / float64(to-from) / float64(devices)
}

// saidBefore looks for the same error in a kernel log, which names GPUs by bus, while metrics name them
// by number. If exactly one fits, it is that one.
func saidBefore(list []reported, e *driverError) (k int, ok bool) {
	if e.device.GPU < 0 {
		return 0, false
	}
	n := 0
	for i := range list {
		if o := &list[i]; o.code == e.code && o.ofSwitch == e.ofSwitch && !o.known() && o.device.Host == e.device.Host && e.at >= o.at && e.at-o.at <= soon {
			k, n = i, n+1
		}
	}
	if n != 1 {
		return 0, false
	}
	if f := &list[k].finding; f.At.Host == "" {
		f.At.Host = e.device.User
		f.Evidence = append(f.Evidence, finding.Sentence("metrics have it, too: it is %s", e.device.name()))
	}
	return k, true
}

// subkind is what people call an error: "Xid 79".
func (e *driverError) subkind() string {
	if e.ofSwitch {
		return fmt.Sprintf("SXid %d", e.code)
	}
	return fmt.Sprintf("Xid %d", e.code)
}

// finding returns the finding about an error: what it means, and whether the GPU goes on.
func (e *driverError) finding() finding.Finding {
	where := e.device.name()
	if !e.known() {
		where = e.device.Host
	}
	f := finding.Finding{Subkind: e.subkind(), Since: e.at, CostBasis: finding.GPUTime, Confidence: finding.Certain, At: place.Device(where)}
	f.At.Host = e.device.User
	f.Text = e.text
	if where != "" {
		f.Text += " on " + where
	}
	if e.at != 0 {
		f.Text += " at " + words.At(e.at, "15:04:05")
	}
	switch means := fatal[e.code]; {
	case e.isNonfatal():
		f.Evidence = append(f.Evidence, finding.Sentence("the driver calls it nonfatal: the GPU keeps running"))
		f.Confidence = finding.Likely
	case e.ofSwitch && strings.Contains(strings.ToLower(e.text), ": fatal"):
		f.Text += ": the switch and its GPUs need a reset"
	case e.ofSwitch:
		f.Evidence = append(f.Evidence, finding.Sentence("the driver does not call it fatal: the switch keeps running"))
		f.Confidence = finding.Likely
	case means != "" && !strings.Contains(e.text, means):
		f.Text += ": " + means
	case ofDevice[e.code] != "":
		f.Evidence = append(f.Evidence, finding.Sentence("%s", ofDevice[e.code]))
	case means == "":
		f.Evidence = append(f.Evidence, finding.Sentence("such an error usually comes from the program itself, or follows another one"))
		f.Confidence = finding.Likely
	}
	return f
}

// Network is the subkind of findings about faults of network devices.
const Network = "network"

// subkindOf returns the subkind of a fault without an Xid.
func subkindOf(text string) string {
	if strings.HasPrefix(text, "RDMA device ") || strings.Contains(text, "network device ") {
		return Network
	}
	return "device"
}

// otherDevices are the beginnings of what hosts report about faults without an Xid.
var otherDevices = []string{"RDMA device ", "the link of network device ", "network device ", "PCIe error ", "the machine reports ", "the clocks of GPU ", "memory of GPU ", "the driver asks of GPU ", "the driver cannot start GPU ",
	"page fault of GPU ", "hang of GPU ", "hang of a GPU ", "reset of GPU ", "uncorrectable errors of GPU ", // of AMD
	"the kernel of the host panicked", "a bug in the kernel of the host", "process ", "nvidia-peermem: ", "uncorrectable errors of the memory of the host"}

// isOther reports whether a text is such a report.
func isOther(text string) bool {
	return slices.ContainsFunc(otherDevices, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

// faults returns findings about network devices, PCIe, and machines. Faults of a host within a minute
// of one that has a finding are evidence there.
func faults(set *series.Set) (list []finding.Finding) {
	const together = trace.Time(60e9)
	last := map[int32]int{} // by place: index into list
	for i := range set.Instants {
		x := &set.Instants[i]
		text := set.Syms.Name(x.Text)
		if x.Kind != series.Hardware || !isOther(text) {
			continue
		}
		subkind := subkindOf(text)
		host := set.Servers[set.Places[x.Place].Server].Host
		if host != "" {
			text += " on " + host
		}
		if x.Time != 0 {
			text += " at " + words.At(x.Time, "15:04:05")
		}
		if x.Count > 1 {
			text += ", " + words.Counted(int(x.Count), "time")
		}
		if k, ok := last[x.Place]; ok && x.Time-list[k].Since <= together {
			list[k].Evidence = append(list[k].Evidence, finding.Sentence("along with it: %s", text))
			continue
		}
		last[x.Place] = len(list)
		pos := set.Pos(x)
		list = append(list, finding.Finding{Subkind: subkind, Since: x.Time, CostBasis: finding.GPUTime, Confidence: finding.Certain, At: place.Device(host), Text: text,
			Evidence: []finding.Evidence{finding.Sentence("%s:%d", pos.File, pos.Line)}})
	}
	return list
}
