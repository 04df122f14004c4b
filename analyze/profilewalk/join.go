package profilewalk

import (
	"cmp"
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// A Joiner matches work on devices with the calls that launched it. Both are read concurrently, because reading takes
// most of the time; the callbacks run on one goroutine.
type Joiner struct {
	Copies bool // treat copies as work, too, like kernels without a graph
	Call   func(*profile.Call)
	// Work takes a kernel. It returns false if its call is not known yet.
	Work func(*profile.Kernel) bool
	// Orphan takes kernels whose call is unknown even after all calls were read.
	Orphan func(*profile.Kernel)

	batch   int // kernels in a batch
	patient int // kernels that may wait

	next chan []profile.Kernel
	free chan []profile.Kernel
	// at is the batch whose calls are not all read yet: some of its kernels start later than the last call.
	at []profile.Kernel
	// waiting are kernels whose call was unknown so far.
	waiting []profile.Kernel
}

const (
	joinBatch = 512 // kernels
	// firstBatch is the initial capacity of a batch, because there may be thousands of streams with few kernels.
	firstBatch = 16
	joinAhead  = 32 // batches that are read ahead
	// maxWaiting is the most kernels that may wait. With more, calls seem to be missing, so all calls are read first.
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

// read sends the kernels of a stream in batches.
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

// catchUp processes the batches of kernels that began before call c, because their calls were already read.
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

// finish processes a kernel after all calls were read.
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

// Copied is the sum of some copies, or fills.
type Copied struct {
	N     int64
	Time  int64 // ns: sum of the durations
	Bytes int64 // of the copies of known size; see Sized
	Sized int64 // ns: durations of the copies of known size
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

// Rate returns the bytes per second of the copies of known size, or 0 if there are none.
func (s *Copied) Rate() float64 {
	if s.Sized == 0 {
		return 0
	}
	return float64(s.Bytes) / float64(s.Sized) * 1e9
}

// CopiedFields returns the columns of size and rate.
func CopiedFields[T any](of func(*T) *Copied) []table.Field[T] {
	sized := func(row *T) bool { return of(row).Sized > 0 || of(row).Bytes > 0 }
	return []table.Field[T]{
		{Column: table.Column{Name: "size", Unit: table.Bytes, Doc: "total size of those whose size is known"},
			Cell: func(row *T) table.Cell { return table.Cell{N: of(row).Bytes, Unknown: !sized(row)} }},
		table.NumberColumn("gb per second", "bandwidth in GB/s (10^9 bytes) of those whose size is known", func(row *T) float64 {
			if of(row).Sized == 0 {
				return math.NaN()
			}
			return of(row).Rate() / 1e9
		}),
	}
}

// MemoryField returns the column of the kinds of memory.
func MemoryField[T any](of func(*T) profile.CopyKind) table.Field[T] {
	return table.TextColumn("memory", "source and destination kinds of memory, such as Pageable -> Device", func(row *T) string { return of(row).String() })
}
