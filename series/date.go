package series

import (
	"time"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// dates decides on which day the stamps of inputs are that have none: the only one on which an input and the others were
// recorded at one time, in whatever zones these are. Else it stays that before the file was written.
func (s *Set) dates(k Known) {
	for i := range s.Sources {
		if src := &s.Sources[i]; !src.Undated && src.First != 0 {
			k.From, k.To = order.Earlier(k.From, src.First), max(k.To, src.Last)
		}
	}
	for i := range s.Sources {
		src := &s.Sources[i]
		if !src.Undated || src.First == 0 {
			continue
		}
		message := trace.LogNoDate
		if by, ok := sameDay(src, k); ok {
			s.shift(uint32(i), by)
			message = trace.LogDate
		}
		s.Diags.Add(message.Of(src.Name, time.Unix(0, int64(src.Last)).UTC().Format(time.DateOnly)))
	}
}

// sameDay returns by how many whole days, in ns, an input is to be shifted to overlap with others. Where several fit, none does.
func sameDay(src *Source, k Known) (by trace.Time, ok bool) {
	const day = trace.Time(24 * time.Hour)
	if k.From == 0 {
		return 0, false
	}
	earliest := (k.From - src.Last) / day * day // within a day of the first that overlaps
	n := 0
	for off := earliest - day; off <= earliest+2*day; off += day {
		if src.First+off <= k.To && k.From <= src.Last+off {
			by, n = off, n+1
		}
	}
	return by, n == 1
}
