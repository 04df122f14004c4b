package hardware

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// reasons are the bits of DCGM_FI_DEV_CLOCKS_EVENT_REASONS, worst first. Bits that follow from others
// come after these.
var reasons = []struct {
	bit  uint64
	text string
}{
	{0x40, "thermal slowdown by hardware"}, {0x80, "power brake by hardware"}, {0x20, "thermal slowdown by software"}, {0x8, "slowdown by hardware"},
	{0x4, "limit of power"}, {0x10, "sync boost with another GPU"}, {0x2, "clocks that applications set"},
}

// why says what bits mean; "" if they mean nothing.
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

// ClockSubkind is the subkind of findings about clocks.
const ClockSubkind = "clock"

// Clocks returns findings about GPUs that are slower than their peers, are slowed down, or idle while
// their peers work. uses may tell which rank a GPU works for.
func Clocks(set *series.Set, uses []Use) ([]finding.Finding, finding.Check) {
	devices := devices(set)
	join(devices, uses)
	check := finding.Check{What: "clocks and use of GPUs against those of their peers", Of: "GPU", Needed: fewPeers + 1}
	for _, d := range devices {
		if len(d.clock) > 0 || len(d.util) > 0 {
			check.N++
		}
	}
	if check.N == 0 {
		check.Reason = "no metrics have the clocks of GPUs, or how busy they are"
	}
	from, to, _ := set.Bounds()
	var list []finding.Finding
	slow := Slower(devices)
	for _, same := range alike(slow) {
		f := same[0].finding(len(devices), from, to)
		for _, s := range same[1:] {
			other := s.finding(len(devices), from, to)
			f.Cost = min(1, f.Cost+other.Cost)
			f.Evidence = append(f.Evidence, finding.Sentence("%s", other.Text))
		}
		if n := len(same) - 1; n > 0 {
			f.Text += fmt.Sprintf("; the same goes for %s of its host", words.Counted(n, "other"))
		}
		list = append(list, f)
	}
	for _, b := range Brakes(devices, slow) {
		list = append(list, b.finding(len(devices), from, to))
	}
	return append(list, idlers(devices, from, to)...), check
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
	f.Text = fmt.Sprintf("the SM clock of %s was %s MHz, %s %s, %s %s", of, number(s.Clock), peers(s.Others), number(s.Peers), map[bool]string{true: "at", false: "since"}[s.N == 1], words.At(s.Since, "15:04:05"))
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
	if s.N == 1 {
		say("there is one scrape: since when is not known")
	} else {
		say("%s in a row, one every %s; it may have begun that much earlier", words.Counted(s.N, "scrape"), s.Every)
	}
	switch {
	case s.Known && why(s.Reasons) == "":
		say("its throttle reasons name none: an application may have set its clock, or it is another model")
	case !s.Known && s.Heat > s.PeersHeat:
		say("it is at %s °C, and its peers at %s: no metrics have its throttle reasons, which would tell whether heat slows it down", number(s.Heat), number(s.PeersHeat))
	case !s.Known:
		say("%s", noReasons("its"))
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

func noReasons(its string) string {
	return fmt.Sprintf("no metrics have %s throttle reasons: DCGM_FI_DEV_CLOCKS_EVENT_REASONS would tell why", its)
}

// peers says whose clocks a clock is compared with.
func peers(n int) string {
	if n == 1 {
		return "that of its only peer"
	}
	return fmt.Sprintf("that of its %d peers", n)
}

// at returns where a GPU is, with its pod if that is known, which logs call by the same name.
func at(d *Device) place.Location {
	w := place.Device(d.name())
	w.Host = d.User
	return w
}

func number(v float64) string { return words.Thousands(int64(v + 0.5)) }
