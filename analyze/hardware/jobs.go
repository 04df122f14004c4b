package hardware

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Use is the only GPU that a rank used while a profiler recorded it.
type Use struct {
	Rank string // as reports print it
	Host string // "" is unknown
	UUID string // "" is unknown
	// GPU is its number on the machine, or, where Sees is set, among the so many GPUs that the
	// process saw; -1 is unknown.
	GPU, Sees int
	From, To  trace.Time // when it was recorded
}

// join finds the rank that each GPU of metrics works for, and by what: its UUID, which nothing else
// has, or else its host and its number there. Where no recording names a host, and metrics have one
// only, its number alone has to do.
func join(devices []*Device, uses []Use) {
	uses = named(devices, uses)
	for i := range uses {
		u := &uses[i]
		var found []*Device
		by := "UUID"
		for _, d := range devices {
			if u.UUID != "" && bareUUID(u.UUID) == bareUUID(d.UUID) {
				found = append(found, d)
			}
		}
		if len(found) == 0 {
			found, by = byIndex(devices, u, uses)
		}
		for _, d := range found {
			if d.use != nil { // two ranks cannot both have it
				d.use, d.by = nil, ""
				d.shared = true
			} else if len(found) == 1 && !d.shared {
				d.use, d.by = u, by
			}
		}
	}
}

// named returns uses without the name of their host where they have one host, and metrics call none so: it may be an ID.
func named(devices []*Device, uses []Use) []Use {
	for i := range uses {
		u := &uses[i]
		if u.Host != uses[0].Host || slices.ContainsFunc(devices, func(d *Device) bool { return sameHost(d.Host, u.Host) }) {
			return uses
		}
	}
	bare := slices.Clone(uses)
	for i := range bare {
		bare[i].Host = ""
	}
	return bare
}

// byIndex finds the GPU of a rank by its number on its host. A process that saw some of the GPUs of a
// host only counts these.
func byIndex(devices []*Device, u *Use, uses []Use) (found []*Device, by string) {
	hosts := map[string]int{}
	for _, d := range devices {
		hosts[d.Host]++
	}
	if u.Host == "" { // GPUs that did nothing then are none of its
		for host := range hosts {
			if !slices.ContainsFunc(devices, func(d *Device) bool { return d.Host == host && d.workedIn(u) }) {
				delete(hosts, host)
			}
		}
	}
	by = "host and index"
	if u.Host == "" {
		by = "index alone: no recording names a host, and metrics have one with GPUs that worked then"
		if len(hosts) > 1 || slices.ContainsFunc(uses, func(u Use) bool { return u.Host != "" }) {
			return nil, ""
		}
	}
	for _, d := range devices {
		known := u.UUID != "" && d.UUID != "" // and they differ
		all := u.Sees == 0 || u.Sees >= hosts[d.Host]
		if !known && all && u.GPU >= 0 && int(d.GPU) == u.GPU && (u.Host == "" && hosts[d.Host] > 0 || sameHost(u.Host, d.Host)) {
			found = append(found, d)
		}
	}
	return found, by
}

// workedIn reports whether a GPU worked while a rank was recorded, as far as anybody knows.
func (d *Device) workedIn(u *Use) bool {
	every := spacing(d.util)
	return len(d.util) == 0 || slices.ContainsFunc(d.util, func(x series.Sample) bool {
		return x.Time >= u.From-trace.Time(every) && x.Time <= u.To+trace.Time(every) && x.Value >= busy
	})
}

// bareUUID returns the part of a UUID that all producers have: DCGM writes GPU-, others leave that out.
func bareUUID(s string) string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s), "gpu-"), "-", "")
}

// sameHost reports whether two names are of one host: one may have its domain.
func sameHost(a, b string) bool {
	short := func(s string) string { s, _, _ = strings.Cut(strings.ToLower(s), "."); return s }
	return short(a) == short(b)
}

// during reports whether a GPU was slow while its rank was recorded.
func (s *Slow) during() bool {
	u := s.Device.use
	every := trace.Time(s.Every)
	return u != nil && s.Since-every <= u.To && (s.Until == 0 || s.Until+every >= u.From)
}

// Beside says what metrics have of the clock of a rank's GPU while it was recorded, beside those of
// other ranks and other GPUs of its host: equal tells that it was as high. It is "" if they have
// nothing.
func Beside(set *series.Set, uses []Use, rank place.Location) (text string, equal bool) {
	devices := devices(set)
	join(devices, uses)
	i := slices.IndexFunc(devices, func(d *Device) bool { return d.use != nil && place.Named(d.use.Rank) == rank })
	if i < 0 {
		return "", false
	}
	d := devices[i]
	own, peers, others := d.clockIn(d.use), []float64{}, order.Only(devices, func(o *Device) bool { return o != d && o.use != nil })
	if len(others) == 0 { // of the ranks that it is late beside, nothing is known
		others = d.peers(devices)
	}
	for _, o := range others {
		if v := o.clockIn(d.use); v > 0 {
			peers = append(peers, v)
		}
	}
	if own == 0 || len(peers) == 0 {
		return "", false
	}
	usual := order.Median(peers)
	return fmt.Sprintf("metrics have the SM clock of its GPU (%s, by %s) at %s MHz then, and that of %s at %s",
		d.name(), d.by, number(own), words.Counted(len(peers), "other"), number(usual)), own >= lower*usual
}

// ClocksOf returns what metrics have of the clock of GPUs while their ranks were recorded, in MHz, by rank.
func ClocksOf(set *series.Set, uses []Use) map[string]float64 {
	devices, clocks := devices(set), map[string]float64{}
	join(devices, uses)
	for _, d := range devices {
		if d.use != nil {
			clocks[d.use.Rank] = d.clockIn(d.use)
		}
	}
	return clocks
}

// clockIn returns the clock while a rank was recorded: of scrapes in that time, and of one on either side,
// where the GPU worked; 0 is unknown.
func (d *Device) clockIn(u *Use) float64 {
	every := spacing(d.clock)
	var list []float64
	for _, x := range d.clock {
		if x.Time >= u.From-trace.Time(every) && x.Time <= u.To+trace.Time(every) && d.works(x.Time, every) {
			list = append(list, x.Value)
		}
	}
	if len(list) == 0 {
		return 0
	}
	return order.Median(list)
}
