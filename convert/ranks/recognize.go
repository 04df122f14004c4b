package ranks

import "github.com/sgtrace/sgtrace/profile"

// recognize finds out which events of the export the traces have, too.
func (a *absorption) recognize() {
	n := a.from
	a.duplicates = make([]int32, len(n.Events))
	for i := range a.duplicates {
		a.duplicates[i] = isNew
	}
	names := profile.NewBareNames(a.syms)
	own, ownEvents := momentsOf(n.Profile, "", profile.KernelSlice, profile.CallSlice, names)
	a.seen = own.len()
	for k, p := range a.pairs {
		if p.duplicates == nil {
			continue
		}
		held, heldEvents := momentsOf(p.trace.File.Profile, p.trace.Part, profile.KernelSlice, profile.CallSlice, names)
		search := p.duplicates.forEvents(held).begin()
		for i, e := range ownEvents {
			if a.duplicates[e] != isNew {
				continue
			}
			at, ok := search.find(own.Name[i], own.Start[i], own.Dur[i])
			switch {
			case ok && k == 0:
				a.duplicates[e] = heldEvents[at]
			case ok:
				a.duplicates[e] = elsewhere
			}
		}
	}
	a.recognizeLaunches(names)
	for _, t := range a.duplicates {
		if t != isNew {
			a.same++
		}
	}
}

// recognizeLaunches recognizes calls by what they launched: profilers do not agree
// as well about how long a call took.
func (a *absorption) recognizeLaunches(names *profile.BareNames) {
	f, n := a.into, a.from
	a.own = n.JoinLaunches(func(*profile.Row) bool { return true })
	theirs := f.JoinLaunches(func(r *profile.Row) bool { return r.Part == a.part })
	for i := range n.Events {
		w := &n.Events[i]
		if !w.IsWork() || a.duplicates[i] < 0 {
			continue
		}
		call, other := a.own.Of(w.Correlation), theirs.Of(f.Events[a.duplicates[i]].Correlation)
		if call >= 0 && other >= 0 && a.duplicates[call] == isNew && names.Of(n.Events[call].Name) == names.Of(f.Events[other].Name) {
			a.duplicates[call] = other
		}
	}
	a.leaveOutWhole(theirs)
}

// leaveOutWhole leaves out runs of whole graphs of which the trace has the kernels:
// those that it has of the same call.
func (a *absorption) leaveOutWhole(theirs *profile.Join) {
	f, n := a.into, a.from
	launched := make([]bool, len(f.Events)) // calls of the trace
	for i := range f.Events {
		if w := &f.Events[i]; w.IsWork() && f.Rows[w.Place.Row()].Part == a.part {
			if call := theirs.Of(w.Correlation); call >= 0 {
				launched[call] = true
			}
		}
	}
	for i := range n.Events {
		w := &n.Events[i]
		if !w.IsWork() || !profile.IsWholeGraph(a.syms.Name(w.Name)) {
			continue
		}
		call := a.own.Of(w.Correlation)
		if call >= 0 && a.duplicates[call] >= 0 && launched[a.duplicates[call]] {
			a.duplicates[i] = elsewhere
		}
	}
}
