package requests

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Requests that failed or were turned away are a finding if there are at least fewFailed, and one in failedOneIn. A
// single one may be the client's fault.
const (
	fewFailed   = 2
	failedOneIn = 1000
)

// FailureFindings finds requests that got no answer through no fault of their clients.
func FailureFindings(s *request.Set) ([]finding.Finding, finding.Check) {
	failed := requestsThat(s, func(r *request.Request) bool { return r.Status == request.Failed })
	full := requestsThat(s, s.TurnedAway)
	check := finding.Check{What: "failures", Of: "request", N: len(s.Requests), Needed: fewFailed}
	all := slices.Concat(failed, full)
	slices.Sort(all)
	switch {
	case areMany(s, failed) && areMany(s, full): // a full queue has other reasons
		return []finding.Finding{failedFinding(s, failed), failedFinding(s, full)}, check
	case areMany(s, all):
		return []finding.Finding{failedFinding(s, all)}, check
	}
	return nil, check
}

// areMany reports whether a number of requests is worth a finding.
func areMany(s *request.Set, list []int) bool {
	return len(list) >= fewFailed && len(list)*failedOneIn >= len(s.Requests)
}

// TurnedAway is the subkind of findings about requests that nearly all found the queue full.
const TurnedAway = "turned away"

// RetractionFindings finds requests that were removed from their batch.
func RetractionFindings(s *request.Set, b *cause.Costs, preempted bool) ([]finding.Finding, finding.Check) {
	retracted := requestsThat(s, func(r *request.Request) bool { return r.Metrics.Retractions > 0 })
	n, all := len(retracted), len(s.Requests)
	check := finding.Check{What: "retractions", Of: "request", N: all, Needed: finding.FewDelayed}
	if n < finding.FewDelayed || n*finding.DelayedOneIn < all {
		return nil, check
	}
	why := "because the KV cache was full"
	if preempted {
		why = "for others, whose prompts were computed immediately"
	}
	return b.Price([]finding.Finding{{
		Claim: b.AllOf(retracted, cause.Retraction), Affected: finding.AffectedOf(s, retracted),
		Show:   [][]string{{"requests", "--sort", "-retractions", "--limit", strconv.Itoa(n)}},
		Metric: finding.Metric{Name: "share of requests retracted", Unit: table.Share, Before: math.NaN(), After: float64(n) / float64(all)},
		Text:   fmt.Sprintf("%s of %s were retracted (removed from their batch %s); %s", words.Thousands(int64(n)), words.Counted(all, "request"), why, place.BetweenTimes(s, retracted)),
	}}), check
}

// requestsThat returns the indexes of the requests for which is returns true.
func requestsThat(s *request.Set, is func(*request.Request) bool) []int {
	var list []int
	for i := range s.AllRequests() {
		if is(&s.Requests[i]) {
			list = append(list, i)
		}
	}
	return list
}

func failedFinding(s *request.Set, failed []int) finding.Finding {
	share := float64(len(failed)) / float64(len(s.Requests))
	reasons := reasonsOf(s, failed)
	f := finding.Finding{
		Since: failingSince(s, failed), Cost: share, Affected: finding.AffectedOf(s, failed), Show: showEnds(s, failed),
		Metric: finding.Metric{Name: "share of requests without an answer", Unit: table.Share, Before: math.NaN(), After: share},
		Text:   fmt.Sprintf("%s of %s got no answer (%s)", words.Thousands(int64(len(failed))), words.Counted(len(s.Requests), "request"), mainReasons(reasons)),
	}
	where, most := failingServers(s, failed)
	if most != "" {
		f.Text += ", " + most
	}
	if f.Since != 0 {
		f.Metric.Before = 0
		f.Text += fmt.Sprintf("; the first of them started at %s, and none of the %s before it failed",
			words.At(f.Since, words.TenthLayout), words.Counted(failed[0], "request"))
	} else {
		f.Text += "; " + place.BetweenTimes(s, failed)
	}
	for _, r := range reasons {
		f.Evidence = append(f.Evidence, finding.Sentence("%d: %s: %s", len(r.requests), r.text, place.SomeRequests(s, r.requests)))
	}
	if len(where) > 1 {
		const few = 4
		counts := order.Each(where[:min(few, len(where))], func(x reason) string { return fmt.Sprintf("%d on %s", len(x.requests), x.text) })
		f.Evidence = append(f.Evidence, finding.Sentence("the servers with most of them: %s", strings.Join(counts, ", ")))
	}
	full := slices.DeleteFunc(slices.Clone(failed), func(i int) bool { return s.Requests[i].Status == request.Failed })
	if areMany(s, full) { // the others are too few to matter
		f.Subkind, f.Brief = TurnedAway, fmt.Sprintf("%s found the queue full", words.Counted(len(full), "request"))
	}
	return f
}

// failingServers groups requests by the server that failed them, the most first. most says in words which server had
// most of them; "" if none had, or that is unknown.
func failingServers(s *request.Set, failed []int) (list []reason, most string) {
	by := map[string][]int{}
	for k := range memory.Each(len(failed), request.RequestSize) {
		i := failed[k]
		if proc := failingProc(s, &s.Requests[i]); proc != request.None {
			name := serverOf(s, proc)
			by[name] = append(by[name], i)
		}
	}
	list = ranked(by)
	if common := commonServers(s, failed); len(list) > 0 && len(common) > 0 {
		return list, "all on " + strings.Join(common, " and ")
	}
	if len(list) == 0 || 2*len(list[0].requests) <= len(failed) {
		return list, ""
	}
	if n := len(list[0].requests); n < len(failed) {
		return list, fmt.Sprintf("%d of them on %s", n, list[0].text)
	}
	return list, "all on " + list[0].text
}

// serverOf names the server of a process.
func serverOf(s *request.Set, proc int) string {
	at := place.NewLocation(s, proc).Team()
	at.Rank.DP = -1
	return fmt.Sprintf("%s (%s)", at.Role, at.ServerName())
}

// commonServers names the prefill and decode servers that all of some requests were on, if there are other servers of
// the role: either side of a failing pair may be at fault.
func commonServers(s *request.Set, list []int) []string {
	on := map[string]int{}
	for k := range memory.Each(len(list), request.RequestSize) {
		for _, p := range s.PartsOf(&s.Requests[list[k]]) {
			if part := &s.Parts[p]; part.Proc != request.None && (part.Role == request.Prefill || part.Role == request.Decode) {
				on[serverOf(s, part.Proc)]++
			}
		}
	}
	others := map[request.Role]map[string]bool{}
	for p := range s.Procs {
		role := s.Procs[p].Role
		if others[role] == nil {
			others[role] = map[string]bool{}
		}
		others[role][serverOf(s, p)] = true
	}
	var common []string
	for _, role := range [...]request.Role{request.Prefill, request.Decode} {
		for name := range others[role] {
			if on[name] == len(list) && len(others[role]) > 1 {
				common = append(common, name)
			}
		}
	}
	slices.Sort(common) // decode before prefill
	return common
}

// failingProc returns the proc that ended a request: that of the thread that recorded it, or else the tokenizer of
// the server that should have answered; None if no server has the request.
func failingProc(s *request.Set, r *request.Request) int {
	for _, p := range s.PartsOf(r) {
		for _, t := range s.ThreadsOf(&s.Parts[p]) {
			if s.Threads[t].Status != request.Finished {
				return s.Threads[t].Proc
			}
		}
	}
	if len(s.PartsOf(r)) == 0 || !s.Parts[s.Answering(r)].Serves() {
		return request.None
	}
	return s.Parts[s.Answering(r)].Proc
}

// showEnds returns the commands that list requests that ended in the same way, and the stages in which they did.
func showEnds(s *request.Set, failed []int) [][]string {
	list := []string{"requests"}
	for _, status := range [...]request.Status{request.Failed, request.Aborted} {
		if slices.ContainsFunc(failed, func(i int) bool { return s.Requests[i].Status == status }) {
			list = append(list, "--status", status.String())
		}
	}
	return [][]string{list, {"--by", "status,stage"}}
}

// A reason is a text with the requests that it applies to.
type reason struct {
	text     string
	requests []int // indexes into Set.Requests, sorted by start
}

// reasonsOf returns the reasons why requests failed, the most common first.
func reasonsOf(s *request.Set, failed []int) []reason {
	by := map[string][]int{}
	for _, i := range failed {
		text := reasonGist(s.Syms.Name(s.Requests[i].Reason))
		by[text] = append(by[text], i)
	}
	return ranked(by)
}

// ranked sorts reasons, the most common first.
func ranked(by map[string][]int) (reasons []reason) {
	for text, list := range by {
		reasons = append(reasons, reason{text, list})
	}
	slices.SortFunc(reasons, func(x, y reason) int {
		return cmp.Or(len(y.requests)-len(x.requests), strings.Compare(x.text, y.text))
	})
	return reasons
}

// mainReasons names the most common reasons in a sentence, with the number of requests for each if there are several.
func mainReasons(reasons []reason) string {
	const most = 3
	if len(reasons) == 1 {
		return reasons[0].text
	}
	told := order.Each(reasons[:min(most, len(reasons))], func(r reason) string { return fmt.Sprintf("%d %s", len(r.requests), r.text) })
	if n := len(reasons) - most; n > 0 {
		told = append(told, fmt.Sprintf("%s more", words.Counted(n, "reason")))
	}
	return strings.Join(told, ", ")
}

// failingSince returns the start of the first failed request if it is not by chance that none failed before, or else
// 0. If every request were equally likely to fail, all failures would be after the first n requests with a
// probability of at most ((all - n) / all)^failed.
func failingSince(s *request.Set, failed []int) trace.Time {
	const chance = 0.01
	all := float64(len(s.Requests))
	if math.Pow((all-float64(failed[0]))/all, float64(len(failed))) > chance {
		return 0
	}
	return s.Requests[failed[0]].Start
}

// reasonGist returns a reason without the name of the request: "Prefill transfer failed".
func reasonGist(reason string) string {
	const most = 100 // characters; SGLang puts the main information first
	reason, _, _ = strings.Cut(reason, " for request")
	return table.CutMiddle(cmp.Or(strings.TrimRight(reason, ". "), "no reason given"), most, table.Style{ASCII: true})
}

// A Loss is the spans that other spans prove to be lost from a dump.
type Loss struct {
	Lost, Shown int        // spans proven to be lost, and spans proven to have been written
	From, To    trace.Time // of the lost spans; 0 if there are none
	// Incomplete is the number of requests with missing spans, including those cut off by the beginning or the end of
	// the dump. They are left out where their times would not add up. Requests is the number of all requests.
	Incomplete, Requests int
	Procs                []ProcLoss // procs that lost spans, the most first
}

// A ProcLoss is the loss of one process.
type ProcLoss struct {
	Name        string
	Lost, Shown int
}

// FindLoss sums up the lost spans of s.
func FindLoss(s *request.Set) *Loss {
	l := &Loss{Lost: len(s.Missing), Requests: len(s.Requests)}
	for _, n := range s.Shown {
		l.Shown += n
	}
	lost := make([]int, len(s.Procs))
	for i, m := range s.Missing {
		if i == 0 || m.Time < l.From {
			l.From = m.Time
		}
		l.To = max(l.To, m.Time)
		lost[m.Proc]++
	}
	for i := range s.AllRequests() {
		if !s.Requests[i].Complete() {
			l.Incomplete++
		}
	}
	for p, n := range lost {
		if n > 0 {
			where := place.NewLocation(s, p)
			l.Procs = append(l.Procs, ProcLoss{where.String(), n, s.Shown[p]})
		}
	}
	slices.SortStableFunc(l.Procs, func(x, y ProcLoss) int { return cmp.Compare(y.Lost, x.Lost) })
	return l
}

// share returns the share of spans that are lost, among those that others prove to have been written.
func (l *Loss) share() float64 { return distribution.Ratio(float64(l.Lost), float64(l.Shown)) }

// Text says how much is lost, and when. The true loss may be larger, because a span is not noticed if all spans that
// prove it are lost, too.
func (l *Loss) Text() string {
	about := "less than 0.1"
	if share := l.share(); share >= 0.001 {
		about = "at least " + words.InPercent(share)
	}
	incomplete := "no request is incomplete"
	if l.Incomplete > 0 {
		incomplete = fmt.Sprintf("%s of %s are incomplete", words.Thousands(int64(l.Incomplete)), words.Counted(l.Requests, "request"))
	}
	from, to := words.Tenths(l.From, l.To)
	return fmt.Sprintf("%s %% of the spans were lost on their way to the dump, between %s and %s; %s", about, from, to, incomplete)
}

// Findings returns the loss as a finding, with the processes that lost most.
func (l *Loss) Findings() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "lost spans", Of: "span", N: l.Shown, Needed: 1}
	if l.Lost == 0 {
		return nil, check
	}
	f := finding.Finding{Since: l.From, Until: l.To, Text: l.Text(), Affected: finding.Affected{N: l.Incomplete},
		Metric: finding.Metric{Name: "share of lost spans", Unit: table.Share, Before: math.NaN(), After: l.share()}}
	const few = 3
	for _, p := range l.Procs[:min(few, len(l.Procs))] {
		f.Evidence = append(f.Evidence, finding.Sentence("%s lost %s %% of the spans that other processes imply: %s of %s",
			p.Name, words.InPercent(float64(p.Lost)/float64(p.Shown)), words.Thousands(int64(p.Lost)), words.Counted(p.Shown, "span")))
	}
	return []finding.Finding{f}, check
}
