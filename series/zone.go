package series

import (
	"fmt"
	"time"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Zone relates the stamps of an input to Unix time.
type Zone struct {
	// Local says that stamps are of a wall clock without a zone, stored as if it were UTC.
	Local bool
	// East is how far the wall clock is ahead of UTC, once By is not "".
	East time.Duration
	By   string // how it was determined, in words
	// votes counts, by zone in quarters of an hour, the stamps with a Unix time beside them.
	votes map[int32]int
}

// Assumed is By for an input without evidence of its zone: it is assumed to be UTC.
const Assumed = "nothing"

// quarter divides the offset of every time zone.
const quarter = 15 * time.Minute

// Beside records that a wall-clock stamp is beside a Unix time. A stamp that is more than a few minutes
// from any zone is ignored.
func (z *Zone) Beside(stamp, unix trace.Time) {
	const most, slack = 14 * time.Hour, 5 * time.Minute
	off := time.Duration(stamp - unix)
	q := (off + quarter/2) / quarter
	if off < -quarter/2 {
		q = (off - quarter/2) / quarter
	}
	if rest := off - q*quarter; max(rest, -rest) > slack || max(off, -off) > most+quarter {
		return
	}
	if z.votes == nil {
		z.votes = map[int32]int{}
	}
	z.votes[int32(q)]++
}

// decide chooses the zone that nearly all votes are for; the rest may be from clocks that were set.
func (z *Zone) decide() bool {
	best, all := int32(0), 0
	for q, n := range z.votes {
		all += n
		if n > z.votes[best] || n == z.votes[best] && q < best {
			best = q
		}
	}
	if n := z.votes[best]; n > 0 && 10*n >= 9*all {
		z.East, z.By = time.Duration(best)*quarter, "Unix times beside local ones"
		return true
	}
	return false
}

// Name returns the name of a zone, "UTC-4", "UTC+5:30".
func (z *Zone) Name() string {
	if z.East == 0 {
		return "UTC"
	}
	sign, east := '+', z.East
	if east < 0 {
		sign, east = '-', -east
	}
	if m := east % time.Hour / time.Minute; m != 0 {
		return fmt.Sprintf("UTC%c%d:%02d", sign, east/time.Hour, m)
	}
	return fmt.Sprintf("UTC%c%d", sign, east/time.Hour)
}

// Known is what other inputs know about the time of the recording.
type Known struct {
	// Given is the zone that the user gave; GivenBy is "" without one.
	Given   *time.Location
	GivenBy string
	// From and To bound the recordings of other inputs, in Unix time; 0 without any.
	From, To trace.Time
}

// zones decides the zone of each input with local stamps, by the best evidence first: Unix times in the
// input, the user, other inputs' zones, agreement with metrics, overlap with other inputs.
func (s *Set) zones(k Known, same map[int32]int32) {
	for i := range s.Sources { // inputs with Unix times also show when it was
		if src := &s.Sources[i]; !src.Zone.Local && src.First != 0 {
			k.From, k.To = order.Earlier(k.From, src.First), max(k.To, src.Last)
		}
	}
	var open []*Source
	found := map[time.Duration]string{}
	for i := range s.Sources {
		src := &s.Sources[i]
		switch z := &src.Zone; {
		case !z.Local || src.First == 0:
		case z.decide():
			found[z.East] = src.Name
		case k.Given != nil:
			_, east := time.Unix(0, int64(src.First)).In(k.Given).Zone()
			z.East, z.By = time.Duration(east)*time.Second, k.GivenBy
		default:
			open = append(open, src)
		}
	}
	for _, src := range open {
		z := &src.Zone
		if len(found) == 1 {
			for east, name := range found {
				z.East, z.By = east, "the zone of "+name
			}
			continue
		}
		if east, ok := s.agrees(src, same); ok {
			z.East, z.By = east, "what the metrics of its server say at that time"
			continue
		}
		if east, ok := fits(src, k); ok {
			z.East, z.By = east, "the only zone in which it overlaps with other inputs"
			continue
		}
		z.By = Assumed
		s.Diags.Add(trace.LogZoneUnknown.Of(src.Name))
	}
}

// fits returns the zone, in whole hours, in which an input and the others were recorded at the same time;
// ok is false unless exactly one fits.
func fits(src *Source, k Known) (east time.Duration, ok bool) {
	if k.From == 0 {
		return 0, false
	}
	const hours = 14
	best, n := time.Duration(0), 0
	for h := -hours; h <= hours; h++ {
		off := trace.Time(time.Duration(h) * time.Hour)
		if src.First-off <= k.To && k.From <= src.Last-off {
			best, n = time.Duration(off), n+1
		}
	}
	return best, n == 1
}
