package fleet

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/request"
)

// look notes what could have been found late or slow, and what was.
func (r *Run) look(m *finders.Measured, found *finders.Result, ranks *ranks) {
	could := couldFind(found.Checks)
	for i := range ranks.list {
		x := &ranks.list[i]
		r.note(x.Subject, could[GPU])
		if x.Host != "" {
			r.note(Subject{Level: Host, Host: x.Host}, could[Host])
		}
	}
	if s := m.Of.Requests; s != nil {
		for i := range m.Tail.List {
			a := &m.Tail.List[i]
			if from, to := knownHost(s, a.Prefill), knownHost(s, a.Answer); from != "" && to != "" && from != to {
				r.note(Subject{Level: Hosts, Host: from, To: to}, could[Hosts])
			}
		}
	}
	for i := range found.All {
		f := &found.All[i]
		var gpu *Subject
		for _, level := range levels[f.Kind] {
			s, ok := subjectOf(f, level, ranks)
			if !ok {
				continue
			}
			x := r.note(s, true)
			x.gpuTime, x.requestTime = max(x.gpuTime, r.gpuTime(f)), max(x.requestTime, r.requestTime(f))
			if !slices.Contains(x.kinds, f.Kind) {
				x.kinds = append(x.kinds, f.Kind)
			}
			if level == GPU {
				gpu = &s
			}
			if level == Host && gpu != nil {
				x.on[gpu.key()] = true
			}
		}
	}
}

// note returns the subject as the run has it, which it adds if need be.
func (r *Run) note(s Subject, could bool) *sighting {
	k := s.key()
	if r.seen[k] == nil {
		r.seen[k] = &sighting{Subject: s, on: map[key]bool{}}
	}
	x := r.seen[k]
	x.could = x.could || could
	return x
}

// couldFind tells for which subjects there was enough to judge.
func couldFind(checks []finders.FinderCheck) (could [Hosts + 1]bool) {
	for i := range checks {
		c := &checks[i]
		if c.Check.State() != finding.LookedAt {
			continue
		}
		for _, level := range levels[c.Finder.Kind] {
			could[level] = true
		}
	}
	return could
}

// subjectOf returns what a finding is about at a level.
func subjectOf(f *finding.Finding, level Level, ranks *ranks) (s Subject, ok bool) {
	row := rowOf(f)
	switch level {
	case GPU:
		if x := ranks.rankOf(f); x != nil {
			return x.Subject, true
		}
	case Host:
		host := f.At.Host
		if x := ranks.rankOf(f); x != nil {
			host = x.Host
		}
		if attribute := row["attribute"]; attribute == "host" || attribute == "prefill host" {
			host = row["value"]
		}
		return Subject{Level: Host, Host: host}, host != "" && host != unknownHost
	case Hosts:
		from, to := ranks.hosts[row["from"]], ranks.hosts[row["to"]]
		if row["attribute"] == "hosts" {
			from, to, _ = strings.Cut(row["value"], " to ")
		}
		return Subject{Level: Hosts, Host: from, To: to}, from != "" && to != "" && from != to
	}
	return s, false
}

// rowOf returns the names of the first row that a finding has its evidence from.
func rowOf(f *finding.Finding) map[string]string {
	row := map[string]string{}
	for _, e := range f.Evidence {
		for _, k := range e.Row {
			row[k.Column] = k.Text
		}
		if len(row) > 0 {
			break
		}
	}
	return row
}

// knownHost names the host of a proc; "" is unknown.
func knownHost(s *request.Set, proc int32) string {
	if proc == request.None || s.Procs[proc].Host == "" {
		return ""
	}
	return s.HostOf(int(proc))
}
