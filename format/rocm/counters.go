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
				v.AddProfiles(inventory.Trace{File: in.Name, Size: size, Producer: producer, Runtime: "ROCm"}, profiles, are)
			}}, nil
	}
}
