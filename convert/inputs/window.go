package inputs

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Window reads the recordings of an input once more, for a window of time on its clock.
func (m *Loaded) Window(x *Source, files []*ProcessProfile, w Extent, workers int) {
	if x.Content.Stream == nil {
		return
	}
	filter := m.opt.Filter
	filter.From, filter.To = w.From, w.To
	filter.IndexOnly, filter.Fingerprint = m.isOut(x), false
	opt := m.options(filter, workers)
	opt.Diags = &trace.Diags{} // what is wrong with the input was reported when it was read first
	profiles, err := x.Content.Stream(opt)
	if err != nil { // it is gone meanwhile, or long since, if a dataset has the rest
		m.unusable(x.Input, err)
		return
	}
	for _, f := range files {
		for _, p := range profiles {
			if x.sameProcess(p, f.Profile, len(profiles)) {
				f.Replace(p)
			}
		}
	}
}

// sameProcess reports whether p, of so many profiles that were read again, is what was read before.
func (x *Source) sameProcess(p, before *profile.Profile, of int) bool {
	switch {
	case x.Format.Machine:
		return p.Meta.PID == before.Meta.PID
	case of == 1:
		return true // whatever a window leaves of what tells its number
	}
	return p.Meta.PID == before.Meta.PID && p.Meta.Rank == before.Meta.Rank
}

// Collectives reads the collectives of an input whose rows are walked, of each of its profiles.
// What is wrong with the input was reported when it was opened.
func (m *Loaded) Collectives(x *Source) ([]*profile.Profile, error) {
	opt := m.options(profile.Filter{IndexOnly: true, CollectivesOnly: true}, 0)
	opt.Diags, opt.Args = &trace.Diags{}, nil
	return x.Content.Stream(opt)
}

// An Extent is the time that a timeline covers.
type Extent struct{ From, To trace.Time }

func (e Extent) Has(t trace.Time) bool { return t >= e.From && t <= e.To }
