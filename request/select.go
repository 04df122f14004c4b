package request

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Selection says which requests, and which of their spans, to keep. The zero value keeps everything; all
// conditions must hold, and the values of one condition are alternatives.
type Selection struct {
	// Conditions on whole requests:
	RIDs      []string   // rid or full ID of any part, or a prefix
	Rooms     []string   // bootstrap room, hex or decimal
	Traces    []string   // trace ID in hex; leading zeros are optional
	Statuses  []Status   // how they ended
	Slowest   int        // the number of requests with the highest SlowestBy; 0 is all
	SlowestBy string     // "e2e" (default), "ttft" or "itl" (p99)
	Sample    float64    // share of requests, 0 < Sample < 1, chosen by ID; 0 is all
	From, To  trace.Time // requests that overlap [From, To]; 0 is no bound

	// Conditions on spans of these requests:
	Roles  []Role
	Hosts  []string // prefixes of names or IDs
	Ranks  []naming.Want
	Stages []string // names of stages, or of spans of gateways and other services; requests and threads around them are kept
	MinDur int64    // ns
	Level  int      // keep stages up to this trace level; 0 is all
}

// Select applies sel. Requests that are left out are removed from s.Requests; their spans, and all others
// that do not match, become Unselected. Metrics remain those of the whole requests. An error names a
// condition that matches nothing.
func (s *Set) Select(sel Selection) error {
	if sel.everything() {
		return nil
	}
	if err := s.selectRequests(&sel); err != nil {
		return err
	}
	s.Own()
	s.Window = sel.window()
	keep := s.spanFilter(&sel)
	if sel.describesSpans() {
		s.keepRequestsWith(keep)
	}
	whole := sel.wholeRequests()
	for i := range s.All() {
		switch {
		case s.Rows[i].Kind == Duplicate || s.Rows[i].Kind == Unselected:
		case s.Rows[i].Part != None && s.RequestOf(i) == None,
			(s.Rows[i].Kind == Gateway || s.Rows[i].Kind == Envelope) && s.RequestOf(i) == None,
			s.Rows[i].Kind == Generic && (whole || !sel.overlaps(s.Row(i).Start, s.Row(i).End)),
			!keep(i):
			s.Rows[i].Kind = Unselected
		}
	}
	return nil
}

// describesSpans reports whether sel has conditions on spans.
func (sel *Selection) describesSpans() bool {
	return len(sel.Roles)+len(sel.Hosts)+len(sel.Ranks)+len(sel.Stages) > 0 || sel.MinDur > 0 || sel.Level > 0
}

// keepRequestsWith leaves out the requests without any stage (or, for servers without stages, request span)
// for which keep holds.
func (s *Set) keepRequestsWith(keep func(i int) bool) {
	has := memory.Make[bool](len(s.Requests))
	for i := range s.All() {
		r := s.RequestOf(i)
		if r == None || has[r] {
			continue
		}
		bare := s.Rows[i].Kind == Root && len(s.ThreadsOf(&s.Parts[s.Rows[i].Part])) == 0
		has[r] = (s.Rows[i].Kind == Stage || s.Rows[i].Kind == Gateway || bare) && keep(i)
	}
	var kept []Request
	for r := range s.AllRequests() {
		if has[r] {
			kept = append(kept, s.Requests[r])
		}
	}
	s.Requests = kept
	s.Own()
}

// everything reports whether sel has no conditions.
func (sel *Selection) everything() bool {
	return !sel.wholeRequests() && !sel.describesSpans() && sel.From == 0 && sel.To == 0
}

// wholeRequests reports whether the selection names requests, which excludes spans of no request.
func (sel *Selection) wholeRequests() bool {
	return len(sel.RIDs)+len(sel.Rooms)+len(sel.Traces)+len(sel.Statuses) > 0 || sel.Slowest > 0 || sel.Sample > 0
}

// window returns the selected time.
func (sel *Selection) window() Interval {
	w := Interval{sel.From, sel.To}
	w.To = cmp.Or(w.To, math.MaxInt64)
	return w
}

func (sel *Selection) overlaps(from, to trace.Time) bool {
	return (sel.From == 0 || to >= sel.From) && (sel.To == 0 || from <= sel.To)
}

func (s *Set) selectRequests(sel *Selection) error {
	keep := s.Requests
	filter := func(f func(r *Request) bool) {
		keep = order.OnlyRows(keep, f)
	}
	if len(sel.RIDs) > 0 {
		match, err := s.matchRIDs(sel.RIDs)
		if err != nil {
			return err
		}
		filter(match)
	}
	if len(sel.Rooms) > 0 {
		rooms := order.Each(sel.Rooms, RoomText)
		filter(func(r *Request) bool { return slices.Contains(rooms, s.Text(r.Room)) })
	}
	if len(sel.Traces) > 0 {
		filter(func(r *Request) bool { return s.inTraces(r, sel.Traces) })
	}
	if len(sel.Statuses) > 0 {
		filter(func(r *Request) bool { return slices.Contains(sel.Statuses, r.Status) })
	}
	filter(func(r *Request) bool { return sel.overlaps(r.Start, r.End) })
	if sel.Sample > 0 {
		filter(func(r *Request) bool { return sampled(s.Text(r.RID), sel.Sample) })
	}
	if sel.Slowest > 0 {
		by, err := slowness(sel.SlowestBy)
		if err != nil {
			return err
		}
		slices.SortStableFunc(keep, func(x, y Request) int { return cmp.Compare(by(&y), by(&x)) })
		keep = slices.Clone(keep[:min(sel.Slowest, len(keep))])
		slices.SortFunc(keep, func(x, y Request) int {
			return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(s.PartsOf(&x)[0], s.PartsOf(&y)[0]))
		})
	}
	s.Requests = keep
	return nil
}

// OnlySlowest returns how many requests sel selects if its only condition on requests is how long they
// took, otherwise 0.
func (sel *Selection) OnlySlowest() int {
	if len(sel.RIDs)+len(sel.Rooms)+len(sel.Traces)+len(sel.Statuses) > 0 || sel.Sample > 0 || sel.SlowestBy != "" && sel.SlowestBy != "e2e" {
		return 0
	}
	return sel.Slowest
}

// SlowestE2E returns the E2E of the fastest of the n slowest requests, in ns; Unknown if there are fewer.
func (s *Set) SlowestE2E(n int) int64 {
	took := memory.Make[int64](len(s.Requests))
	for i := range s.AllRequests() {
		took[i] = s.Requests[i].Metrics.E2E
	}
	if len(took) < n {
		return Unknown
	}
	slices.Sort(took)
	return took[len(took)-n]
}

// slowness returns the metric by which the slowest requests are chosen.
func slowness(by string) (func(r *Request) int64, error) {
	switch by {
	case "", "e2e":
		return func(r *Request) int64 { return r.Metrics.E2E }, nil
	case "ttft":
		return func(r *Request) int64 { return r.Metrics.TTFT }, nil
	case "itl":
		return func(r *Request) int64 { return r.Metrics.ITL.P99 }, nil
	}
	return nil, fmt.Errorf("slowest by %q: want e2e, ttft or itl", by)
}

// LeaveOut marks the spans outside of [from, to] as unselected, and returns their number and the first of
// them.
func (s *Set) LeaveOut(from, to trace.Time) (n, first int) {
	first = None
	for i := range s.All() {
		row := s.Row(i)
		if row.Start >= from && row.Start <= to && row.End <= to || s.Rows[i].Kind == Duplicate || s.Rows[i].Kind == Unselected {
			continue
		}
		s.Rows[i].Kind = Unselected
		if n++; first == None {
			first = i
		}
	}
	return n, first
}

// sampled chooses by the ID alone, so that the same request is chosen in every input that it appears in.
func sampled(rid string, share float64) bool {
	return float64(order.MixText(rid)>>11)/(1<<53) < share
}

// matchRIDs returns a test for requests that have one of the IDs: exactly, or else one that begins with it,
// if it has at least four characters.
func (s *Set) matchRIDs(ids []string) (func(r *Request) bool, error) {
	wanted := map[string]bool{}
	for _, id := range ids {
		exact, prefix := false, map[string]bool{}
		for i := range s.AllRequests() {
			for _, have := range s.IDs(&s.Requests[i]) {
				exact = exact || have == id
				if len(id) >= 4 && strings.HasPrefix(have, id) {
					prefix[have] = true
				}
			}
		}
		switch {
		case exact:
			wanted[id] = true
		case len(prefix) > 0:
			for have := range prefix {
				wanted[have] = true
			}
		default:
			return nil, fmt.Errorf("no request has the ID %q, or one that begins so with at least 4 characters%s ('sgtrace requests' lists them)", id, s.Similar(id))
		}
	}
	return func(r *Request) bool {
		return slices.ContainsFunc(s.IDs(r), func(id string) bool { return wanted[id] })
	}, nil
}

// IDs returns the IDs by which r can be selected.
func (s *Set) IDs(r *Request) []string {
	ids, known := []string{s.Text(r.RID)}, map[string]bool{"": true, s.Text(r.RID): true}
	for _, p := range s.PartsOf(r) {
		for _, id := range [...]string{s.Text(s.Parts[p].RID), s.Text(s.Parts[p].FullID)} {
			if !known[id] {
				known[id] = true
				ids = append(ids, id)
			}
		}
	}
	if r.GatewayID != 0 {
		ids = append(ids, s.Text(r.GatewayID))
	}
	return ids
}

func (s *Set) inTraces(r *Request, traces []string) bool {
	return slices.ContainsFunc(s.PartsOf(r), func(p int) bool { return isTrace(TraceText(s.Parts[p].Trace), traces) })
}

// spanFilter returns the test for individual spans.
func (s *Set) spanFilter(sel *Selection) func(i int) bool {
	procs := make([]bool, len(s.Procs))
	for p := range s.Procs {
		procs[p] = s.matches(p, sel)
	}
	return func(i int) bool {
		row := s.Row(i)
		if p := s.Rows[i].Proc; p != None && !procs[p] {
			return false
		}
		if row.Dur() < sel.MinDur && s.Rows[i].Kind != Root && s.Rows[i].Kind != ThreadRow {
			return false
		}
		if s.Rows[i].Kind != Stage && s.Rows[i].Kind != Gateway && s.Rows[i].Kind != Generic {
			return true
		}
		return (sel.Level == 0 || int(row.Level) <= sel.Level) &&
			(len(sel.Stages) == 0 || slices.Contains(sel.Stages, s.Name(i)))
	}
}

// matches reports whether a proc has a selected role, host, and rank.
func (s *Set) matches(proc int, sel *Selection) bool {
	if len(sel.Roles) > 0 && !slices.Contains(sel.Roles, s.Procs[proc].Role) {
		return false
	}
	if len(sel.Hosts) > 0 && !slices.ContainsFunc(sel.Hosts, func(h string) bool { return s.IsOnHost(proc, h) }) {
		return false
	}
	return len(sel.Ranks) == 0 || slices.ContainsFunc(sel.Ranks, func(w naming.Want) bool { return s.IsRank(proc, w) })
}

// IsOnHost reports whether text is a prefix of the name or ID of a proc's host.
func (s *Set) IsOnHost(proc int, text string) bool { return s.Names.IsHost(s.host(proc), text) }

// IsRank reports whether a proc is a wanted rank.
func (s *Set) IsRank(proc int, w naming.Want) bool { return s.Names.Is(s.Place(proc), w) }
