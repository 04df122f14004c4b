package overtime

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Cells equal a table of what every device did in every nanosecond.
func TestCellsAreWhatEveryNanosecondSays(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 18))
		syms := trace.NewSymbols()
		s := randomWork(r, syms)
		set := testset.SetOf(syms, []string{"TP0", "TP1"}, s)
		opt := Options{Bucket: time.Duration(1 + r.IntN(90)), Everything: true}
		if r.IntN(2) == 0 {
			set.ClockOffsets = []int64{0, 100 - r.Int64N(200)}
		}
		if r.IntN(3) == 0 {
			opt.From, opt.To = trace.Time(1000+r.IntN(200)), trace.Time(1300+r.IntN(400))
		}
		got := timelineOf(set, opt)
		want := everyNanosecond(s, set, &opt, syms)
		for i := range got.Devices {
			d := &got.Devices[i]
			for b := range d.Cells {
				w := want.cell(d, got.Start(b), got.Bucket)
				if c := d.Cells[b]; c != w {
					t.Fatalf("seed %d: %s device %d, bucket %d:\ngot  %+v\nwant %+v", seed, d.Rank, d.Device, b, c, w)
				}
			}
		}
		if len(got.Devices) != len(want.devices) {
			t.Errorf("seed %d: %d devices, want %d", seed, len(got.Devices), len(want.devices))
		}
	}
}

// timelineOf measures a set.
func timelineOf(set *profile.Set, opt Options) *Timeline {
	c := Collect(set, opt)
	return c.Timeline(gpu.Measure(set, gpu.Options{From: opt.From, To: opt.To, Watch: c}))
}

// randomWork returns kernels and copies of two ranks with two devices each.
// Collectives have their own stream, so that no kernel waits for them.
func randomWork(r *rand.Rand, syms *trace.Symbols) *testset.RowStream {
	s := &testset.RowStream{}
	compute, comm, call := syms.Intern("gemm"), syms.Intern("ncclDevKernel_AllReduce_Sum"), syms.Intern("cudaLaunchKernel")
	for rank := range int32(2) {
		for i := range 5 + r.Int64N(60) {
			launch := 1000 + r.Int64N(600)
			start := launch + r.Int64N(120)
			e := profile.Event{Start: trace.Time(start), End: trace.Time(start + r.Int64N(60)), Correlation: i + 1, Rank: rank, PID: rank}
			device := int32(r.IntN(2))
			if r.IntN(6) > 0 {
				s.CallRows = append(s.CallRows, profile.Call{Event: profile.Event{Start: trace.Time(launch), End: trace.Time(launch + r.Int64N(9)),
					Correlation: i + 1, Name: call, Rank: rank, PID: rank}})
			}
			for range 1 + r.IntN(2) {
				switch e.Name = compute; r.IntN(3) {
				case 0:
					s.CopyRows = append(s.CopyRows, profile.Copy{Event: e, Device: device})
				case 1:
					e.Name = comm
					s.KernelRows = append(s.KernelRows, profile.Kernel{Event: e, Device: device, Stream: 7})
				default:
					s.KernelRows = append(s.KernelRows, profile.Kernel{Event: e, Device: device, Stream: uint32(r.IntN(3))})
				}
			}
		}
	}
	return s
}

// moments describes what a device did in each nanosecond, in the time of the reference clock.
type moments struct {
	busy, compute, comm map[int64]bool
	queued              map[int64]int
}

// truth describes what all devices did.
type truth struct {
	devices  map[string]*moments
	recorded map[int32][2]int64
}

// everyNanosecond fills in every nanosecond of every row.
func everyNanosecond(s *testset.RowStream, set *profile.Set, opt *Options, syms *trace.Symbols) *truth {
	w := &truth{devices: map[string]*moments{}, recorded: map[int32][2]int64{}}
	inside := func(e *profile.Event) bool {
		return (opt.From == 0 || e.End >= opt.From) && (opt.To == 0 || e.Start <= opt.To)
	}
	see := func(e *profile.Event) {
		if !inside(e) {
			return
		}
		seen, ok := w.recorded[e.Rank]
		if !ok {
			seen = [2]int64{int64(e.Start), int64(e.End)}
		}
		w.recorded[e.Rank] = [2]int64{min(seen[0], int64(e.Start)), max(seen[1], int64(e.End))}
	}
	launched := map[[2]int64]trace.Time{}
	for i := range s.CallRows {
		c := &s.CallRows[i]
		see(&c.Event)
		launched[[2]int64{int64(c.Rank), c.Correlation}] = c.Start
	}
	each := func(e *profile.Event, from, to trace.Time, f func(at int64)) {
		for at := from; at < to; at++ {
			if (opt.From == 0 || at >= opt.From) && (opt.To == 0 || at < opt.To) {
				f(int64(at) - set.ClockOffsetOf(e.Rank))
			}
		}
	}
	work := func(e *profile.Event, device int32, copied bool) {
		if !inside(e) {
			return
		}
		see(e)
		key := fmt.Sprint(e.Rank, device)
		if w.devices[key] == nil {
			w.devices[key] = &moments{map[int64]bool{}, map[int64]bool{}, map[int64]bool{}, map[int64]int{}}
		}
		m := w.devices[key]
		each(e, e.Start, e.End, func(at int64) {
			m.busy[at] = true
			m.compute[at] = m.compute[at] || !copied && syms.Name(e.Name) == "gemm"
			m.comm[at] = m.comm[at] || !copied && syms.Name(e.Name) != "gemm"
		})
		if launch, ok := launched[[2]int64{int64(e.Rank), e.Correlation}]; ok {
			each(e, launch, e.Start, func(at int64) { m.queued[at]++ })
		}
	}
	for i := range s.KernelRows {
		work(&s.KernelRows[i].Event, s.KernelRows[i].Device, false)
	}
	for i := range s.CopyRows {
		work(&s.CopyRows[i].Event, s.CopyRows[i].Device, true)
	}
	w.clip(set, opt)
	return w
}

// clip bounds the recorded time, and converts it to the reference clock.
func (w *truth) clip(set *profile.Set, opt *Options) {
	for rank, seen := range w.recorded {
		if opt.From != 0 {
			seen[0] = max(seen[0], int64(opt.From))
		}
		if opt.To != 0 {
			seen[1] = min(seen[1], int64(opt.To))
		}
		w.recorded[rank] = [2]int64{seen[0] - set.ClockOffsetOf(rank), seen[1] - set.ClockOffsetOf(rank)}
	}
}

// cell counts the nanoseconds in a bucket.
func (w *truth) cell(d *Device, start trace.Time, bucket int64) (c Cell) {
	m, seen := w.devices[fmt.Sprint(d.RankIndex, d.Device)], w.recorded[d.RankIndex]
	count := func(n *int64, is bool) {
		if is {
			*n++
		}
	}
	for at := int64(start); at < int64(start)+bucket; at++ {
		count(&c.Recorded, at >= seen[0] && at < seen[1])
		count(&c.Busy, m.busy[at])
		count(&c.Compute, m.compute[at])
		count(&c.Comm, m.comm[at])
		count(&c.Hidden, m.compute[at] && m.comm[at])
		c.Queued += int64(m.queued[at])
		c.MostQueued = max(c.MostQueued, m.queued[at])
	}
	return c
}
