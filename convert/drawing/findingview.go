package drawing

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Positions of the groups of findings and of load, before all other groups.
const (
	findingsOrder = -4
	pathsOrder    = -3
	loadOrder     = -2
	loggedOrder   = -1
)

// drawFindings adds the group of findings: a row for each finding, one for events of servers, and one for requests that
// did not finish. Without any of these, there is no group. A finding without a beginning or end extends over all
// requests, or over all profiles.
func drawFindings(b *trace.Builder, opt *Options, set *request.Set, requests, profiles inputs.Extent) {
	findings := opt.Findings
	failed := failures(set, requests)
	if len(findings)+len(opt.Events)+len(failed) == 0 {
		return
	}
	top := b.Track(trace.Track{Name: b.Intern(profile.Findings), Order: findingsOrder, Rank: trace.NoRank,
		Desc: b.Intern("what stands out, the costliest first, from when to when")})
	row := func(name, desc string, order int) trace.TrackID {
		return b.Track(trace.Track{Parent: top, Kind: trace.KindThread, Name: b.Intern(name), Order: int32(order), Rank: trace.NoRank, Desc: b.Intern(desc)})
	}
	var head []trace.Slice
	for i := range findings {
		f, of := &findings[i], requests
		if f.OfProfiles {
			of = profiles
		}
		if f.Since != 0 {
			of.From = f.Since
		}
		if f.Until != 0 {
			of.To = f.Until
		}
		of.From = max(of.From, opt.Window.From)
		if opt.Window.To != 0 {
			of.To = min(of.To, opt.Window.To)
		}
		if of.To < of.From || of.To == 0 {
			continue
		}
		s := trace.Slice{Time: of.From, Dur: max(0, int64(of.To-of.From)), Name: b.Intern(f.Title), Args: fields(b, "finding_", f.Record)}
		subject := b.Subject(trace.Subject{ID: b.Intern(f.Severity)})
		if len(head) < maxInHead && nestsIn(head, &s) {
			s.Track = top
			b.Slice(s, subject)
			head = append(head, s)
		}
		s.Track = row(strconv.Itoa(i+1)+naming.Separator+f.Name, f.Title, i)
		b.Slice(s, subject)
	}
	if len(opt.Events) > 0 {
		track, what := row(fmt.Sprintf("servers%s%d", naming.Separator, len(opt.Events)), "when servers started, drained, were restarted, hung, and died", len(findings)), b.Intern("what")
		for _, e := range opt.Events {
			b.Instant(trace.Instant{Time: e.Time, Track: track, Name: b.Intern(e.Name), Args: b.Args().Put(trace.ArgList(nil).String(what, e.Title))})
		}
	}
	if len(failed) == 0 {
		return
	}
	track := row(fmt.Sprintf("not finished%s%d", naming.Separator, len(failed)), "requests that were aborted, failed or have no end, when they ended", len(findings)+1)
	rid, reason := b.Intern("rid"), b.Intern("reason")
	for _, r := range failed {
		args := trace.ArgList(nil).String(rid, set.Text(r.RID))
		if r.Reason != 0 {
			args = args.String(reason, set.Syms.Name(r.Reason))
		}
		b.Instant(trace.Instant{Time: r.End, Track: track, Name: b.Intern(r.Status.String()), Args: b.Args().Put(args)})
	}
}

// maxInHead is how many findings the group's own row shows: a viewer opens a file with its groups closed.
const maxInHead = 5

// nestsIn reports whether s lies within, around, or apart from each of others, so that they can be drawn on
// one track.
func nestsIn(others []trace.Slice, s *trace.Slice) bool {
	within := func(a, b *trace.Slice) bool { return a.Time >= b.Time && a.End() <= b.End() }
	return !slices.ContainsFunc(others, func(o trace.Slice) bool {
		return !within(s, &o) && !within(&o, s) && s.Time < o.End() && o.Time < s.End()
	})
}

// failures returns the requests that did not finish and ended within an extent.
func failures(set *request.Set, within inputs.Extent) (list []*request.Request) {
	if set == nil {
		return nil
	}
	for i := range set.AllRequests() {
		if r := &set.Requests[i]; r.Status != request.Finished && within.Has(r.End) {
			list = append(list, r)
		}
	}
	return list
}

// fields returns the fields of a record as arguments, each key prefixed with of. The prefix lets redaction
// keep values that are not secret.
func fields(b *trace.Builder, of string, record []Field) trace.ArgsID {
	var list trace.ArgList
	for _, f := range record {
		key := b.Intern(of + f.Key)
		if f.Text == "" && !math.IsNaN(f.Number) {
			list = list.Float(key, f.Number)
		} else if f.Text != "" {
			list = list.String(key, f.Text)
		}
	}
	return b.Args().Put(list)
}

// extentOf returns when the first drawn span begins and the last one ends.
func (l *layout) extentOf() (e inputs.Extent) {
	for i := range l.set.All() {
		if !l.drawn(i) {
			continue
		}
		s := l.set.Row(i)
		e.From, e.To = order.Earlier(e.From, s.Start), max(e.To, s.End)
	}
	return e
}

// told returns from when to when logs and metrics tell something within a window; zero if they have no information there.
func (m *merging) told(window inputs.Extent) inputs.Extent {
	from, to, ok := m.in.Series.Bounds()
	if !ok {
		return inputs.Extent{}
	}
	e := inputs.Extent{From: max(from, window.From), To: to}
	if window.To != 0 {
		e.To = min(to, window.To)
	}
	if e.To < e.From {
		return inputs.Extent{}
	}
	return e
}

// recorded returns the times of the first and last thing that profilers recorded, on the common clock.
func (m *merging) recorded() (e inputs.Extent) {
	for _, r := range m.of.Tracks {
		for _, c := range r.Captures {
			include := func(from, to trace.Time) { e.From, e.To = order.Earlier(e.From, c.Time(from)), max(e.To, c.Time(to)) }
			for i := range c.File.Lines {
				l := &c.File.Lines[i]
				if l.Key.Part != c.Part {
					continue
				}
				for _, lane := range l.Lanes {
					for _, i := range lane {
						include(c.File.Events[i].Time, c.File.Events[i].End())
					}
				}
				for _, i := range l.Samples {
					include(c.File.Samples[i].Time, c.File.Samples[i].Time)
				}
			}
		}
	}
	return e
}
