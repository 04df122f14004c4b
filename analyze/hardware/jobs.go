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
	// GPU is its number on the machine or, if Sees is set, among the Sees GPUs that the process saw; -1
	// is unknown.
	GPU, Sees int
	From, To  trace.Time // when it was recorded
}

// join finds the rank that each GPU in the metrics works for, and how that is known: by UUID, which is
// unique, or else by host and number. If no recording names a host, and metrics have only one, the
// number alone must do.
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

// named returns uses without host names if all have the same one, and no host in the metrics is called that: it may be an ID.
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

// byIndex finds the GPU of a rank by its number on its host. A process that saw only some of the GPUs
// of a host counts only these.
func byIndex(devices []*Device, u *Use, uses []Use) (found []*Device, by string) {
	hosts := map[string]int{}
	for _, d := range devices {
		hosts[d.Host]++
	}
	if u.Host == "" { // hosts whose GPUs did nothing then do not count
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
		known := u.UUID != "" && d.UUID != "" // both are known, and differ
		all := u.Sees == 0 || u.Sees >= hosts[d.Host]
		if !known && all && u.GPU >= 0 && int(d.GPU) == u.GPU && (u.Host == "" && hosts[d.Host] > 0 || sameHost(u.Host, d.Host)) {
			found = append(found, d)
		}
	}
	return found, by
}

// workedIn reports whether a GPU worked while a rank was recorded; it did if that is unknown.
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

// sameHost reports whether two names are of the same host: either may include the domain.
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

// CompareClock describes what metrics show of the clock of a rank's GPU while it was recorded, compared with
// GPUs of other ranks or of its host. equal reports whether it was as high. text is "" if they show
// nothing.
func CompareClock(set *series.Set, uses []Use, rank place.Location) (text string, equal bool) {
	devices := devices(set)
	join(devices, uses)
	i := slices.IndexFunc(devices, func(d *Device) bool { return d.use != nil && place.Named(d.use.Rank) == rank })
	if i < 0 {
		return "", false
	}
	d := devices[i]
	own, peers, others := d.clockIn(d.use), []float64{}, order.Only(devices, func(o *Device) bool { return o != d && o.use != nil })
	if len(others) == 0 { // metrics have none of the ranks that it is compared with
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

// ClocksOf returns the clocks of GPUs while their ranks were recorded, in MHz, by rank, as far as metrics have them.
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

// clockIn returns the median clock while a rank was recorded, from scrapes in that time, and one on
// either side, in which the GPU worked; 0 is unknown.
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
