package rocm

import (
	"iter"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Index returns the Index of a format that read passes the rows of to a recorder. producer is what
// wrote its files.
func Index(producer string, read func(in *format.Input, opt *format.Options, to *Recorder) error) func(*format.Input, *format.Options) (*format.Source, error) {
	again := func(in *format.Input, opt *format.Options) (*Recorder, []*profile.Profile, error) {
		r := NewRecorder(in, opt)
		if err := read(in, opt, r); err != nil {
			return nil, nil, err
		}
		return r, r.Profiles(), nil
	}
	return func(in *format.Input, opt *format.Options) (*format.Source, error) {
		r, profiles, err := again(in, opt)
		if err != nil {
			return nil, err
		}
		return &format.Source{Profiles: profiles,
			Stream: func(opt *format.Options) ([]*profile.Profile, error) {
				quiet := *opt
				quiet.Diags = &trace.Diags{} // what is wrong was said when it was indexed
				_, profiles, err := again(in, &quiet)
				return profiles, err
			},
			Observed: func(rank func(pid int32) int32) profile.Stream { return observed{r, rank} },
			Inventory: func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
				list(v, in.Name, producer, size, profiles, are)
			}}, nil
	}
}

// observed passes the counters of processes.
type observed struct {
	r    *Recorder
	rank func(pid int32) int32
}

func (o observed) CounterValues(yield func(*profile.CounterValue) bool) {
	for _, p := range o.r.procs {
		rank := o.rank(int32(p.p.Meta.PID))
		if rank < 0 {
			continue
		}
		for _, c := range p.counters {
			if c.Rank = rank; !yield(&c) {
				return
			}
		}
	}
}

// The events of these kinds are held, or nobody records them.
func (observed) Kernels(func(*profile.Kernel) bool) {}
func (observed) Copies(func(*profile.Copy) bool)    {}
func (observed) Calls(func(*profile.Call) bool)     {}
func (observed) Ranges(func(*profile.Range) bool)   {}
func (observed) Frames(func(*profile.Frame) bool)   {}
func (observed) Samples(func(*profile.Sample) bool) {}
func (observed) Runs(func(*profile.Run) bool)       {}
func (observed) Backtraces(func(*profile.Sample) bool) iter.Seq[*profile.Sample] {
	return func(func(*profile.Sample) bool) {}
}

// list adds an input to an inventory.
func list(v *inventory.Inventory, file, producer string, size int64, profiles []*profile.Profile, are [][]profile.Identity) {
	row := inventory.Trace{File: file, Size: size, Producer: producer, Runtime: "ROCm"}
	for i, p := range profiles {
		row.Host, row.Backend, row.Absolute = p.Meta.Host, p.Meta.Backend, p.Meta.Origin == profile.OriginUnix
		for _, is := range are[i] {
			x := inventory.Process{File: file, Is: is, N: 1, PID: p.Meta.PID, World: p.Meta.WorldSize, Events: int64(p.Total), Steps: int64(len(p.Steps)), Collectives: int64(p.Collectives.Len())}
			if p.Meta.GPU >= 0 {
				x.GPUs = []int64{int64(p.Meta.GPU)}
			}
			v.AddProcess(x)
		}
		for _, d := range p.Meta.Devices {
			if i == 0 { // every process lists those of the machine
				v.AddDevice(file, d.Name, d.ID)
			}
		}
	}
	v.Traces = append(v.Traces, row)
}
