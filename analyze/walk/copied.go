package walk

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// Copied is the sum of copies, or fills.
type Copied struct {
	N     int64
	Time  int64 // ns, sum of the durations
	Bytes int64 // of those of known size; see Sized
	Sized int64 // ns of the copies of known size
}

// Add adds a copy.
func (s *Copied) Add(c *profile.Copy) {
	one := Copied{N: 1, Time: c.Dur()}
	if c.Bytes >= 0 {
		one.Bytes, one.Sized = c.Bytes, one.Time
	}
	s.Join(&one)
}

// Join adds the copies of another sum.
func (s *Copied) Join(o *Copied) {
	s.N += o.N
	s.Time = distribution.AddTimes(s.Time, o.Time)
	s.Bytes = distribution.AddTimes(s.Bytes, o.Bytes)
	s.Sized = distribution.AddTimes(s.Sized, o.Sized)
}

// Rate returns the bytes per second of the copies of known size, 0 if there are none.
func (s *Copied) Rate() float64 {
	if s.Sized == 0 {
		return 0
	}
	return float64(s.Bytes) / float64(s.Sized) * 1e9
}

// CopiedFields say how much was copied, and how fast.
func CopiedFields[T any](of func(*T) *Copied) []table.Field[T] {
	sized := func(row *T) bool { return of(row).Sized > 0 || of(row).Bytes > 0 }
	return []table.Field[T]{
		{Column: table.Column{Name: "size", Unit: table.Bytes, Doc: "sum of those of known size"},
			Cell: func(row *T) table.Cell { return table.Cell{N: of(row).Bytes, Unknown: !sized(row)} }},
		table.NumberColumn("gb per second", "10^9 bytes per second of the time of those of known size", func(row *T) float64 {
			if of(row).Sized == 0 {
				return math.NaN()
			}
			return of(row).Rate() / 1e9
		}),
	}
}

// MemoryField names the kinds of memory.
func MemoryField[T any](of func(*T) profile.CopyKind) table.Field[T] {
	return table.TextColumn("memory", "from which kind of memory to which", func(row *T) string { return of(row).String() })
}
