package rocm

import (
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// index returns the index of a format that read passes the rows of to a recorder. producer is what
// wrote its files.
func index(producer string, read func(in *format.Input, opt *format.Options, to *recorder) error) func(*format.Input, *format.Options) (*format.Source, error) {
	again := func(in *format.Input, opt *format.Options) ([]*profile.Profile, error) {
		r := newRecorder(in, opt)
		if err := read(in, opt, r); err != nil {
			return nil, err
		}
		return r.profiles(), nil
	}
	return func(in *format.Input, opt *format.Options) (*format.Source, error) {
		profiles, err := again(in, opt)
		if err != nil {
			return nil, err
		}
		return &format.Source{Profiles: profiles,
			Stream: func(opt *format.Options) ([]*profile.Profile, error) {
				quiet := *opt
				quiet.Diags = &trace.Diags{} // what is wrong was said when it was indexed
				return again(in, &quiet)
			},
			Inventory: func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
				list(v, in.Name, producer, size, profiles, are)
			}}, nil
	}
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
