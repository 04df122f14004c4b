package profilewalk

import (
	"cmp"
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// A Joiner brings work on devices together with the calls that asked for it. Both
// are read at once, since reading takes most of the time; what is done with them is
// done on one goroutine.
type Joiner struct {
	Copies bool // copies are work, too: as kernels without a graph
	Call   func(*profile.Call)
	// Work takes a kernel. It returns false if its call is not known.
	Work func(*profile.Kernel) bool
	// Orphan takes kernels whose call is not known even when all were read.
	Orphan func(*profile.Kernel)

	batch   int // kernels
	patient int // kernels that may wait

	next chan []profile.Kernel
	free chan []profile.Kernel
	// at is what is being waited with, as its calls are not read yet: those with a later
	// start.
	at []profile.Kernel
	// waiting are kernels whose call was not known.
	waiting []profile.Kernel
}

const (
	joinBatch = 512 // kernels
	// firstBatch is what a batch has room for before it grows: there may be thousands of streams of few kernels.
	firstBatch = 16
	joinAhead  = 32 // batches that are read before they are needed
	// maxWaiting is how many kernels may wait. Beyond, calls seem to be missing, and all
	// are read first.
	maxWaiting = 1 << 16
)

// Run reads a stream.
func (j *Joiner) Run(stream profile.Stream, opt *Options) {
	j.batch, j.patient = cmp.Or(opt.Batch, joinBatch), cmp.Or(opt.Waiting, maxWaiting)
	j.next, j.free = make(chan []profile.Kernel, joinAhead), make(chan []profile.Kernel, joinAhead+2)
	go j.read(stream)
	n := 0
	for c := range stream.Calls {
		j.Call(c)
		if n++; n%j.batch == 0 {
			j.catchUp(c)
		}
	}
	for i := range j.waiting {
		j.finish(&j.waiting[i])
	}
	for i := range j.at {
		j.finish(&j.at[i])
	}
	for batch := range j.next {
		for i := range batch {
			j.finish(&batch[i])
		}
		j.recycle(batch)
	}
}

// read passes the kernels of a stream on.
func (j *Joiner) read(stream profile.Stream) {
	defer close(j.next)
	var batch []profile.Kernel
	add := func(k *profile.Kernel) {
		if batch == nil {
			select {
			case batch = <-j.free:
			default:
				batch = make([]profile.Kernel, 0, min(j.batch, firstBatch))
			}
		}
		if batch = append(batch, *k); len(batch) == j.batch {
			j.next <- batch
			batch = nil
		}
	}
	for k := range stream.Kernels {
		add(k)
	}
	if j.Copies {
		for c := range stream.Copies {
			add(&profile.Kernel{Event: c.Event, Device: c.Device})
		}
	}
	if batch != nil {
		j.next <- batch
	}
}

// catchUp takes the kernels that began before a call did, whose own calls are
// therefore known.
func (j *Joiner) catchUp(c *profile.Call) {
	for len(j.waiting) < j.patient {
		if j.at == nil {
			select {
			case j.at = <-j.next:
			default:
			}
			if j.at == nil {
				return // nothing was read yet, or there is no more
			}
		}
		if j.at[len(j.at)-1].Start > c.Start {
			return
		}
		for i := range j.at {
			if !j.Work(&j.at[i]) {
				j.waiting = append(j.waiting, j.at[i])
			}
		}
		j.recycle(j.at)
		j.at = nil
	}
}

// finish takes a kernel when all calls are known.
func (j *Joiner) finish(k *profile.Kernel) {
	if !j.Work(k) {
		j.Orphan(k)
	}
}

func (j *Joiner) recycle(batch []profile.Kernel) {
	select {
	case j.free <- batch[:0]:
	default:
	}
}

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
