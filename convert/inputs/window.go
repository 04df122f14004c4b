package inputs

import "github.com/sgtrace/sgtrace/trace"

// Window reads the recordings of an input once more, for a window of time on its clock.
func (m *Inputs) Window(x *Indexed, files []*Recording, w Extent, workers int) {
	if x.Stream == nil {
		return
	}
	filter := m.Opt.Filter
	filter.From, filter.To = w.From, w.To
	filter.IndexOnly, filter.Fingerprint = m.isOut(x), false
	opt := m.Options(filter, workers)
	opt.Diags = &trace.Diags{} // what is wrong with the input was reported when it was read first
	profiles, err := x.Stream(opt)
	if err != nil { // it is gone meanwhile, or long since, if a dataset has the rest
		m.unusable(x.Input, err)
		return
	}
	for _, f := range files {
		for _, p := range profiles {
			if p.Meta.PID == f.Meta.PID || !x.Format.Machine {
				f.Replace(p)
			}
		}
	}
}
