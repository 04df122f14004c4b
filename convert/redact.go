package convert

import (
	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// Learn tells r the names of hosts, requests, and files, so that it finds them in messages. Call it
// after the clocks were aligned, which looks hosts up by name.
func Learn(in *inputs.Loaded, of *ranks.Assignment, r *redact.Redactor) {
	if in.Requests != nil {
		in.Requests.Learn(r)
	}
	for _, host := range of.Hosts() {
		r.LearnHost(host)
	}
	learnSeries(in.Series, r)
	for _, f := range of.Files {
		for _, x := range append([]*inputs.ProcessProfile{f}, f.Duplicates...) {
			r.LearnFile(x.Name)
		}
	}
}

// learnSeries tells r the hosts, servers, and files of logs and metrics.
func learnSeries(set *series.Set, r *redact.Redactor) {
	if set.Empty() {
		return
	}
	for i := range set.Servers {
		r.LearnHost(set.Servers[i].Host)
		r.LearnHost(set.Servers[i].Name)
	}
	for i := range set.Sources {
		r.LearnFile(set.Sources[i].Name)
	}
}

// Redact replaces names in everything that will be drawn, except in arguments: see [RedactTrace].
// Call it after all selection, before drawing.
func Redact(in *inputs.Loaded, of *ranks.Assignment, aligned *clocks.Alignment, r *redact.Redactor) {
	Learn(in, of, r)
	in.Spans.Syms.Rename(r.Scrub)
	if in.Requests == nil {
		return
	}
	clockOf := make(map[request.ClockKey]int, len(aligned.ClockOf))
	for key, clock := range aligned.ClockOf {
		key.Host = r.Host(key.Host)
		clockOf[key] = clock
	}
	aligned.ClockOf = clockOf
	in.Requests.Redact(r)
}

// RedactTrace redacts the rest of a drawn trace: text in arguments, and the attributes of the
// whole.
func RedactTrace(t *trace.Trace, r *redact.Redactor) {
	trace.MapText(t, r.Attribute)
	for i := range t.Attributes {
		a := &t.Attributes[i]
		a.Key, a.Value = r.Scrub(a.Key), r.Scrub(a.Value)
	}
}

// Redact replaces names in everything that reports print. Call it after all selection.
func (p *ReportData) Redact(r *redact.Redactor) {
	if p.Requests != nil {
		p.Requests.Learn(r)
	}
	for _, host := range p.hosts {
		r.LearnHost(host)
	}
	learnSeries(p.Series, r)
	p.Profiles.Syms.Rename(r.Scrub)
	if p.Requests != nil {
		p.Requests.Redact(r)
	}
	for i, name := range p.Profiles.Ranks {
		p.Profiles.Ranks[i] = r.Scrub(name)
	}
	for i := range p.Profiles.Placements {
		p.Profiles.Placements[i].Host, p.Profiles.Placements[i].UUID = r.Host(p.Profiles.Placements[i].Host), r.GPU(p.Profiles.Placements[i].UUID)
	}
	if p.Clocks != nil {
		redactClocks(p.Clocks, r)
	}
}

func redactClocks(c *clocks.Report, r *redact.Redactor) {
	c.Reference = r.Scrub(c.Reference)
	for i := range c.Clocks {
		l := &c.Clocks[i]
		l.Host, l.Reason = r.Scrub(l.Host), r.Scrub(l.Reason)
		for k, name := range l.Names {
			l.Names[k] = r.Scrub(name)
		}
		for k, rank := range l.Ranks {
			l.Ranks[k] = r.Scrub(rank)
		}
	}
}
