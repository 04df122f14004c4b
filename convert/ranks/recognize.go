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
	own, ownEvents := n.MomentsOf("", profile.SharedCategories, names)
	a.seen = own.Len()
	for k, p := range a.pairs {
		if p.duplicates == nil {
			continue
		}
		held, heldEvents := p.trace.File.MomentsOf(p.trace.Part, profile.SharedCategories, names)
		search := p.duplicates.For(held).Search()
		for i, e := range ownEvents {
			if a.duplicates[e] != isNew {
				continue
			}
			at, ok := search.Find(own.Name[i], own.Start[i], own.Dur[i])
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
	hasEvent := func(l *profile.Link) bool { return l.Event != profile.NoEvent }
	own := profile.NewJoin(n.Launches, hasEvent)
	theirs := profile.NewJoin(f.Launches, func(l *profile.Link) bool { return hasEvent(l) && f.Rows[l.Row].Part == a.part })
	correlations := make([]int64, len(f.Events)) // of work of the trace
	for i := range f.Work {
		if w := &f.Work[i]; w.Event != profile.NoEvent {
			correlations[w.Event] = w.Correlation
		}
	}
	for i := range n.Work {
		w := &n.Work[i]
		if w.Event == profile.NoEvent || a.duplicates[w.Event] < 0 {
			continue
		}
		x, y := own.Of(w.Correlation), theirs.Of(correlations[a.duplicates[w.Event]])
		if x < 0 || y < 0 {
			continue
		}
		call, other := n.Launches[x].Event, f.Launches[y].Event
		if a.duplicates[call] == isNew && names.Of(n.Events[call].Name) == names.Of(f.Events[other].Name) {
			a.duplicates[call] = other
		}
	}
	a.leaveOutWhole(own, theirs)
}

// leaveOutWhole leaves out runs of whole graphs of which the trace has the kernels:
// those that it has of the same call.
func (a *absorption) leaveOutWhole(own, theirs *profile.Join) {
	f, n := a.into, a.from
	launched := make([]bool, len(f.Events)) // calls of the trace
	for i := range f.Work {
		if w := &f.Work[i]; w.Event != profile.NoEvent && f.Rows[w.Row].Part == a.part {
			if l := theirs.Of(w.Correlation); l >= 0 {
				launched[f.Launches[l].Event] = true
			}
		}
	}
	for i := range n.Work {
		w := &n.Work[i]
		if w.Event == profile.NoEvent || !profile.IsWholeGraph(a.syms.Name(n.Events[w.Event].Name)) {
			continue
		}
		l := own.Of(w.Correlation)
		if l < 0 {
			continue
		}
		if call := a.duplicates[n.Launches[l].Event]; call >= 0 && launched[call] {
			a.duplicates[w.Event] = elsewhere
		}
	}
}
