package convert

import (
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Inspect reads inputs of any kind as far as it takes to tell what they hold: dumps in
// full, traces without arguments, exports without events. What profilers recorded it adds
// to in; the requests are nil without dumps. read is what was recognized. An input that
// cannot be used is reported to diags and left out; the error is for when none is left.
func Inspect(files []inputs.Input, opt inputs.Options, diags *trace.Diags, in *inventory.Inventory) (requests *request.Set, read []inputs.Input, err error) {
	opt.Filter, opt.Walk = profile.Filter{Args: profile.ArgsNone}, true
	opt.Each = func(x *inputs.Indexed) {
		if x.Source.Inventory != nil {
			x.Source.Inventory(in, sizeOf(x), x.Identities())
		}
	}
	m, err := inputs.Load(files, opt, diags)
	if err != nil {
		return nil, nil, err
	}
	if m.Assembled != nil {
		m.Release()
	}
	return m.Requests, m.Taken, m.Close()
}

// sizeOf returns the size of an input; -1 if that is unknown.
func sizeOf(x *inputs.Indexed) int64 {
	size, _ := x.Input.Size()
	return size
}
