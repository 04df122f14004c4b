package fleet

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Fleet is the combined result of several runs.
type Fleet struct {
	Runs      []*Run // ordered by time
	Offenders []Offender
	Totals    []Total
	Days      []Day
	Versions  []VersionUse
}

// New combines runs, given in order of time.
func New(runs []*Run) *Fleet {
	f := &Fleet{Runs: runs, Offenders: offenders(runs), Totals: totals(runs), Versions: uses(runs)}
	f.Days = days(runs, f.Versions)
	return f
}

// A Total is what one kind of finding cost in all runs.
type Total struct {
	Loss
	Runs int // runs with such a finding
}

// totals adds up what runs lost, by kind; sorted by decreasing GPU time, then request time.
func totals(runs []*Run) []Total {
	var by order.Groups[finding.Kind, Total]
	for _, r := range runs {
		for _, loss := range r.Losses {
			t := by.Of(loss.Kind)
			t.Kind = loss.Kind
			t.Runs++
			t.Findings += loss.Findings
			t.GPU += loss.GPU
			t.Request += loss.Request
		}
	}
	slices.SortStableFunc(by.List, func(a, b Total) int { return cmp.Or(cmp.Compare(b.GPU, a.GPU), cmp.Compare(b.Request, a.Request)) })
	return by.List
}

// recorded returns the recorded time of GPUs and schedulers in all runs, and that of requests, in ns.
func (f *Fleet) recorded() (gpu, requests float64) {
	for _, r := range f.Runs {
		gpu += r.recorded()
		requests += r.RequestTime
	}
	return gpu, requests
}

// Look runs the finders that look at several runs together.
func (f *Fleet) Look() finders.Result {
	m := finders.Measured{Of: finders.Inputs{Weeks: f}}
	return m.Look(finders.OfWeeks())
}

// Document returns the report: the list of what [Fleet.Look] found, and the tables behind it.
// In text, the limit applies to each table.
func (f *Fleet) Document(list *overview.List) *document.Document {
	d := &document.Document{LimitAll: true, Findings: list.Result.Findings, Again: list.Again()}
	d.AddMain(f.offenderReport())
	d.Add(f.totalReport(), f.dayReport(), f.versionReport(), f.runReport(), f.lossReport())
	printed := slices.Clone(d.Tables)
	d.Add(list.Report(), list.FinderReport())
	d.Text = func(w io.Writer, style table.Style) error {
		p := overview.NewPrinter(w, style)
		list.Print(p)
		if text := list.MutedText(); text != "" {
			p.Filled("", 0, "Muted: "+text)
		}
		return p.Out.Flush()
	}
	d.Markdown = list.Markdown
	d.Append(printed...)
	return d
}

// Daily is what was lost on each day, from the day of the first run to that of the last.
type Daily struct {
	Days []trace.Time // noon of each day
	// GPU is the time that devices and schedulers lost, ns, by index in Fleet.Totals and by day; NaN for a day without runs.
	GPU [][]float64
}

// daily adds up what runs lost by the day on which they began. Runs of unknown time have no day.
func (f *Fleet) daily() Daily {
	d := Daily{GPU: make([][]float64, len(f.Totals))}
	index := map[string]int{}
	for _, r := range f.Runs {
		if r.From == 0 {
			continue
		}
		if len(d.Days) == 0 {
			d.add(noon(r.From), index)
		}
		for last := noon(r.From); d.Days[len(d.Days)-1] < last; {
			d.add(noonOf(words.Clock(d.Days[len(d.Days)-1]), 1), index)
		}
		day := index[dayOf(r.From)]
		for k := range f.Totals {
			if math.IsNaN(d.GPU[k][day]) {
				d.GPU[k][day] = 0
			}
			for i := range r.Losses {
				if r.Losses[i].Kind == f.Totals[k].Kind {
					d.GPU[k][day] += r.Losses[i].GPU
				}
			}
		}
	}
	return d
}

// add appends a day.
func (d *Daily) add(day trace.Time, index map[string]int) {
	index[dayOf(day)] = len(d.Days)
	d.Days = append(d.Days, day)
	for k := range d.GPU {
		d.GPU[k] = append(d.GPU[k], math.NaN())
	}
}

// noon returns noon of the day of a time, in the time zone of reports.
func noon(t trace.Time) trace.Time { return noonOf(words.Clock(t), 0) }

func noonOf(t time.Time, later int) trace.Time {
	return trace.Time(time.Date(t.Year(), t.Month(), t.Day()+later, 12, 0, 0, 0, t.Location()).UnixNano())
}

// look records what could have been found late or slow, and what was.
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
			x.kinds = order.With(x.kinds, f.Kind)
			if level == GPU {
				gpu = &s
			}
			if level == Host && gpu != nil {
				x.on[gpu.key()] = true
			}
		}
	}
}

// note returns the run's sighting of a subject, adding it if needed.
func (r *Run) note(s Subject, could bool) *sighting {
	k := s.key()
	if r.seen[k] == nil {
		r.seen[k] = &sighting{Subject: s, on: map[key]bool{}}
	}
	x := r.seen[k]
	x.could = x.could || could
	return x
}

// couldFind returns for which levels of subjects there was enough data to judge.
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

// subjectOf returns the subject of a finding at a level.
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

// rowOf returns the keys of the first table row in a finding's evidence, by column.
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

// knownHost returns the host of a proc; "" if unknown.
func knownHost(s *request.Set, proc int32) string {
	if proc == request.None || s.Procs[proc].Host == "" {
		return ""
	}
	return s.HostOf(int(proc))
}
