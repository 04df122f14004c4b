package series

import (
	"time"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// dates decides the day of inputs whose stamps have no date: the only day on which the input and the others were
// recorded at the same time, whatever their time zones. If there is not exactly one, it stays the last such time before
// the file was written.
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

// sameDay returns by how many whole days, in ns, to shift an input so that it overlaps with the others; ok is false unless
// exactly one shift fits.
func sameDay(src *Source, k Known) (by trace.Time, ok bool) {
	const day = trace.Time(24 * time.Hour)
	if k.From == 0 {
		return 0, false
	}
	earliest := (k.From - src.Last) / day * day // within a day of the first shift that overlaps
	n := 0
	for off := earliest - day; off <= earliest+2*day; off += day {
		if src.First+off <= k.To && k.From <= src.Last+off {
			by, n = off, n+1
		}
	}
	return by, n == 1
}
