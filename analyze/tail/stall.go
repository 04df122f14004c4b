package tail

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Stalls are the times in which the prefill of prompts held up the decoding of other requests for far longer than the
// usual gap between tokens.
type Stalls struct {
	Limit int64   // ns from which a gap is a stall; the smallest limit if groups of servers have different ones
	List  []Stall // sorted by cost, the largest first
	Total int64   // ns that decodes were held up, in all
	// Chunk is the number of prompt tokens that could be computed between two decode steps without a gap longer than
	// ChunkTakes, in ns; 0 is unknown.
	Chunk, ChunkTakes int64
}

// A Stall is one such time on one rank.
type Stall struct {
	Proc     int        // index into Set.Procs of the rank that decodes
	From, To trace.Time // of the longest gap between tokens
	Held     []int      // requests that were held up, as indexes into Set.Requests
	HeldFor  []int64    // ns that each of Held was held up
	Longest  int64      // ns: the largest of HeldFor
	Total    int64      // ns: the sum of HeldFor
	Prompts  int        // prompts that were prefilled meanwhile
	Tokens   int64      // tokens of prompts that were computed meanwhile
	// Culprit is the request with most of Tokens, an index into Set.Requests; None is unknown. Share is its share of
	// Tokens, and Chunks the number of pieces in which its prompt was computed.
	Culprit int
	Prompt  int64 // tokens of its prompt that had to be computed
	Share   float64
	Chunks  int
}

// A gap is a stall if people notice it, and if it is far longer than the usual gap and the prefill of the median
// prompt: decoding always waits for prompts that arrive.
const (
	noticed        = int64(100_000_000) // ns
	stallsBeyond   = 8                  // times the median gap
	prefillsBeyond = 4                  // times the prefill of the median prompt
)

// A heldGap is a gap between tokens in which other requests were prefilled.
type heldGap struct {
	proc, request int
	from, to      trace.Time
	held          int64 // ns
}

// stalls finds the stalls. median is the median gap between tokens, and longest the longest gap of each request, in
// ns.
func (t *Tail) stalls(a *cause.Attributor, median int64, longest []int64) *Stalls {
	limits := t.stallLimits(median)
	s := &Stalls{Limit: slices.Min(limits)}
	byRequest := make([][]heldGap, len(t.List))
	a.Parallel(len(t.List), func(w *cause.Walk, i int) {
		r, limit := t.List[i].Request, limits[t.List[i].AnswerGroup]
		if longest[i] < limit {
			return
		}
		w.GapsOf(r, func(ns int64) bool { return ns >= limit }, func(g *cause.GapSplit) {
			if g.Interference >= limit {
				byRequest[i] = append(byRequest[i], heldGap{int(t.List[i].Answer), r, g.From, g.To, g.Interference})
			}
		})
	})
	gaps := slices.Concat(byRequest...)
	if len(gaps) == 0 {
		return s
	}
	slices.SortStableFunc(gaps, func(x, y heldGap) int { return cmp.Or(cmp.Compare(x.proc, y.proc), cmp.Compare(x.to, y.to)) })
	prompts := t.prompts()
	slower := t.slowerThanUsual(prompts)
	for len(gaps) > 0 {
		n := 1 // all requests of a batch get their tokens at once
		for n < len(gaps) && gaps[n].proc == gaps[0].proc && gaps[n].to-gaps[0].to <= request.SameBatch {
			n++
		}
		proc := gaps[0].proc
		x := newStall(gaps[:n], prompts[proc])
		gaps = gaps[n:]
		usual := &t.Sizes.Prompt[t.Peers.GroupOf(int32(proc))]
		if !x.byPrompts(float64(usual.Expected(x.Tokens))*slower[proc].middle) || !x.asOthers(usual, &slower[proc]) {
			continue
		}
		s.List, s.Total = append(s.List, x), s.Total+x.Total
	}
	slices.SortStableFunc(s.List, func(x, y Stall) int { return cmp.Compare(y.Total, x.Total) })
	if len(s.List) > 0 {
		s.chooseChunk(&t.Sizes.Prompt[t.Peers.GroupOf(int32(s.List[0].Proc))])
	}
	return s
}

// byPrompts reports whether the prompts explain the stall. usual is how long that many tokens usually take there, in
// ns; 0 is unknown. A stall of more than three times that is the server standing still, whatever it computes.
func (x *Stall) byPrompts(usual float64) bool {
	const beyond = 3 // times what is usual
	return usual == 0 || float64(x.Longest) <= beyond*usual
}

// asOthers reports whether the stall lasts about as long as prompts of its size, or the longest ones, take on this
// server. They are compared by how much longer they take than their size explains, because attention takes more time
// per token in long prompts.
func (x *Stall) asOthers(usual *distribution.SizeFit, slower *slowness) bool {
	const (
		enough = 8
		about  = 1.5
	)
	n := len(slower.tokens)
	if n < enough {
		return true
	}
	from, _ := slices.BinarySearch(slower.tokens, min(x.Tokens/2, slower.tokens[n-enough]))
	others := distribution.LowerMedian(slices.Clone(slower.times[from:]))
	byThemselves := usual.Expected(x.Tokens) + int64(max(0, x.Prompts-1))*usual.Expected(0) // each in a batch of its own
	return float64(x.Longest) <= about*float64(byThemselves)*others
}

// A slowness is how many times as long as their size explains the prompts of a proc took: of each prompt, the
// shortest first, and the median, which is 0 without prompts.
type slowness struct {
	tokens []int64
	times  []float64
	middle float64
}

func newSlowness(prompts []prompt, usual *distribution.SizeFit) (s slowness) {
	for _, p := range slices.SortedFunc(slices.Values(prompts), func(a, b prompt) int { return cmp.Compare(a.tokens, b.tokens) }) {
		s.tokens = append(s.tokens, p.tokens)
		s.times = append(s.times, float64(p.To-p.From)/float64(max(1, usual.Expected(p.tokens))))
	}
	s.middle = distribution.LowerMedian(slices.Clone(s.times))
	return s
}

// slowerThanUsual returns the slowness of each proc.
func (t *Tail) slowerThanUsual(prompts [][]prompt) []slowness {
	slower := make([]slowness, len(prompts))
	parallel.Each(len(prompts), func(proc int) {
		if len(prompts[proc]) > 0 {
			slower[proc] = newSlowness(prompts[proc], &t.Sizes.Prompt[t.Peers.GroupOf(int32(proc))])
		}
	})
	return slower
}

// stallLimits returns the length from which a gap is a stall, in ns, for each group of servers. median is the median
// gap of all servers.
func (t *Tail) stallLimits(median int64) []int64 {
	medians, prompts := make([][]int64, t.Peers.Len()), make([][]int64, t.Peers.Len())
	for i := range cause.Each(t.List) {
		a := &t.List[i]
		m := &t.set.Requests[a.Request].Metrics
		if len(medians) > 1 && m.ITL.N > 0 {
			medians[a.AnswerGroup] = memory.Append(medians[a.AnswerGroup], m.ITL.P50)
		}
		if n := m.PrefillTokens(); n >= 0 {
			prompts[a.PrefillGroup] = memory.Append(prompts[a.PrefillGroup], n)
		}
	}
	limits := make([]int64, len(medians))
	for group, list := range medians {
		usual := median
		if len(list) > 0 {
			usual = distribution.LowerMedian(list)
		}
		limits[group] = max(noticed, stallsBeyond*usual)
		if prefill := &t.Sizes.Prompt[group]; prefill.N > 0 { // of the median prompt
			limits[group] = max(limits[group], prefillsBeyond*prefill.Expected(distribution.LowerMedian(prompts[group])))
		}
	}
	return limits
}

// chooseChunk sets Chunk to the largest power of two whose computation takes at most half of the limit, and is too
// short to be noticed.
func (s *Stalls) chooseChunk(usual *distribution.SizeFit) {
	const least, most = 256, 1 << 16 // tokens
	enough := min(s.Limit/2, noticed)
	for chunk := int64(least); usual.N > 0 && chunk <= most && usual.Expected(chunk) <= enough; chunk *= 2 {
		s.Chunk, s.ChunkTakes = chunk, usual.Expected(chunk)
	}
}

// A prompt is the prefill of a request on one rank.
type prompt struct {
	request.Interval
	request int
	tokens  int64      // tokens that were computed
	chunks  int        // number of pieces in which they were computed
	latest  trace.Time // latest end of this prefill and those that began before it
}

// prompts lists the prefills on every proc that leads a unified server, sorted by start.
func (t *Tail) prompts() [][]prompt {
	out := make([][]prompt, len(t.set.Procs))
	for i := range t.set.AllParts() {
		p := &t.set.Parts[i]
		lead := t.set.Lead(p)
		if p.Role != request.Unified || lead == request.None || p.Request == request.None {
			continue
		}
		proc := t.set.Threads[lead].Proc
		t.set.EachStage(t.set.StagesOf(lead), func(i int) {
			row := t.set.Row(i)
			switch list := out[proc]; {
			case row.Means == request.Prefilling && row.Start < row.End && request.Plausible(row.Start, row.End):
				out[proc] = append(list, prompt{Interval: request.Interval{From: row.Start, To: row.End}, request: p.Request, tokens: max(0, p.PromptTokens-max(0, p.CachedTokens)), chunks: 1})
			case row.Means == request.PrefillingChunk && len(list) > 0 && list[len(list)-1].request == p.Request:
				if list[len(list)-1].chunks++; row.Start <= list[len(list)-1].From+request.SameBatch { // the first chunk
					list[len(list)-1].chunks = 1
				}
			}
		})
	}
	for _, list := range out {
		byStart(list)
	}
	return out
}

// byStart sorts prefills as [within] needs them.
func byStart(list []prompt) {
	slices.SortStableFunc(list, func(x, y prompt) int { return cmp.Compare(x.From, y.From) })
	latest := trace.Time(math.MinInt64)
	for i := range list {
		latest = max(latest, list[i].To)
		list[i].latest = latest
	}
}

// within returns the prefills of a rank from the first that ends after from to the last that begins before to. Some
// in between may have ended before from.
func within(prompts []prompt, from, to trace.Time) []prompt {
	begin := sort.Search(len(prompts), func(i int) bool { return prompts[i].latest > from })
	end := sort.Search(len(prompts), func(i int) bool { return prompts[i].From >= to })
	return prompts[begin:max(begin, end)]
}

// newStall makes a stall from the gaps of one batch and the prefills of its rank.
func newStall(gaps []heldGap, prompts []prompt) Stall {
	x := Stall{Proc: gaps[0].proc, From: gaps[0].from, To: gaps[0].to, Culprit: request.None}
	for _, g := range gaps {
		x.Held, x.HeldFor = append(x.Held, g.request), append(x.HeldFor, g.held)
		x.Longest, x.Total = max(x.Longest, g.held), x.Total+g.held
		x.From, x.To = min(x.From, g.from), max(x.To, g.to)
	}
	most := int64(0)
	prompts = within(prompts, x.From, x.To)
	for i := range prompts {
		p := &prompts[i]
		from, to := max(p.From, x.From), min(p.To, x.To)
		if from >= to {
			continue
		}
		// Of a prefill that is partly outside, tokens count in proportion to its time inside.
		tokens := int64(float64(p.tokens) * float64(to-from) / float64(p.To-p.From))
		x.Prompts++
		if x.Tokens += tokens; tokens > most {
			most, x.Culprit, x.Prompt, x.Chunks = tokens, p.request, p.tokens, p.chunks
		}
	}
	if x.Tokens > 0 {
		x.Share = float64(most) / float64(x.Tokens)
	}
	return x
}

// StallSubkind is the subkind of findings about stalls caused by one prompt, and CrowdSubkind about stalls caused by
// many prompts together.
const (
	StallSubkind = "stalls"
	CrowdSubkind = "stalls of many prompts"
)

// maxOf is the share of the tokens computed in a stall that makes one prompt its culprit.
const maxOf = 0.5

// prefillBound is the share of the time of requests from which prefills of others leave too little for decoding.
const prefillBound = 0.5

// alone reports whether a single prompt caused the stall.
func (x *Stall) alone() bool { return x.Culprit != request.None && x.Share >= maxOf }

// Stalls are a finding if the worst held up at least fewHeld decodes, and all together cost stallsCost of the time of
// requests: every unified server has a few stalls.
const (
	fewHeld    = 5
	stallsCost = 0.01
)

// StallFindings returns which prompts held up the decoding of others, and which size of chunks would have avoided it.
func (t *Tail) StallFindings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "prompts that hold up decoding", Of: "finished request", N: len(t.List), Needed: finding.FewCompared}
	x := t.Stalls
	if x == nil {
		check.Reason = "no gaps between tokens were traced"
		return nil, check
	}
	cost := b.Part(float64(x.Total))
	if len(x.List) == 0 || len(x.List[0].Held) < fewHeld || cost < stallsCost {
		return nil, check
	}
	worst := &x.List[0]
	f := finding.Finding{
		Subkind: StallSubkind, Cost: cost, Claim: b.Amounts(x.held(), cause.Interference), At: t.placeOf(int32(worst.Proc)), Text: t.stallSentence(worst), Affected: finding.AffectedOf(t.set, t.heldUp()),
		Metric: finding.Metric{Name: "longest gap between tokens", Unit: table.Duration, Before: math.NaN(), After: float64(worst.Longest)},
		Evidence: []finding.Evidence{finding.Sentence("meanwhile, %s of %s were prefilled", words.Counted(int(worst.Tokens), "token"), words.Counted(worst.Prompts, "prompt")).
			In("stalls", finding.Row("stall", "1"), "tokens", float64(worst.Tokens))},
	}
	if !worst.alone() {
		f.Subkind = CrowdSubkind
	}
	if n := len(x.List); n > 1 {
		f.Text += fmt.Sprintf("; decoding stalled %d times for %s or more", n, words.Nearly(x.Limit))
	}
	if k := slices.IndexFunc(x.List[:t.listed()], func(x Stall) bool { return x.alone() }); k > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", t.stallSentence(&x.List[k])).
			In("stalls", finding.Row("stall", strconv.Itoa(k+1)), "longest_ns", float64(x.List[k].Longest)))
	}
	said := fmt.Sprintf("prefills of others hold up decoding for %s %% of the time of all requests", words.InPercent(t.interference()))
	if t.interference() >= prefillBound {
		f.Text += "; prefill-bound: " + said
	} else {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", said))
	}
	if x.Chunk > 0 {
		f.Evidence = append([]finding.Evidence{finding.Sentence("%s", x.advice())}, f.Evidence...)
	}
	return []finding.Finding{f}, check
}

// held returns how long the decoding of each request, an index into Set.Requests, was held up, in ns.
func (s *Stalls) held() map[int]int64 {
	held := map[int]int64{}
	for i := range s.List {
		for k, r := range s.List[i].Held {
			held[r] += s.List[i].HeldFor[k]
		}
	}
	return held
}

// stallSentence names the prompt that held up decodes, or the longest of several.
func (t *Tail) stallSentence(x *Stall) string {
	what := words.Counted(x.Prompts, "prompt") + " of unknown requests"
	switch {
	case x.Culprit == request.None:
	case x.alone():
		what = fmt.Sprintf("the %s-token prompt of request %s", words.Thousands(x.Prompt), t.set.Text(t.set.Requests[x.Culprit].RID))
	default:
		what = fmt.Sprintf("%d prompts (%s tokens; the longest, of request %[4]s, has %[3]s)",
			x.Prompts, words.Thousands(x.Tokens), words.Thousands(x.Prompt), t.set.Text(t.set.Requests[x.Culprit].RID))
	}
	where := ""
	if at := t.placeOf(int32(x.Proc)); !t.oneHome[cause.Interference] {
		where = " on " + at.DP()
	}
	text := fmt.Sprintf("the prefill of %s held up %s%s for %s at %s", what, words.Counted(len(x.Held), "decode"), where, words.Nearly(x.Longest),
		words.At(x.From, words.TenthLayout))
	if x.alone() && x.Chunks > 1 {
		text += fmt.Sprintf(", in %d chunks without a decode step between them", x.Chunks)
	}
	return text
}

// advice says what chunked prefill would have achieved.
func (s *Stalls) advice() string {
	return fmt.Sprintf("with prefill in chunks of %s tokens and a decode step after each, no decode would have been held up for more than about %s",
		words.Thousands(s.Chunk), words.Nearly(s.ChunkTakes))
}

// interference returns the share of the total time of requests in which they waited for prefills of others.
func (t *Tail) interference() float64 {
	held, whole := int64(0), int64(0)
	for i := range cause.Each(t.List) {
		held, whole = held+t.List[i].E2E[cause.Interference], whole+t.List[i].E2E.Total()
	}
	return distribution.Ratio(float64(held), float64(whole))
}

// heldUp lists the requests that were ever held up, as indexes into Set.Requests.
func (t *Tail) heldUp() []int {
	held := memory.Make[bool](len(t.set.Requests))
	for i := range t.Stalls.List {
		for _, r := range t.Stalls.List[i].Held {
			held[r] = true
		}
	}
	var list []int
	for r, is := range held {
		if is {
			list = append(list, r)
		}
	}
	return list
}

// listed returns the number of stalls in the table.
func (t *Tail) listed() int { return min(t.Options.Slowest, len(t.Stalls.List)) }

// A stallRow is a stall with its number, from 1.
type stallRow struct {
	*Stall
	number int
}

func (t *Tail) stallsReport() *table.Table {
	type R = stallRow
	x := t.Stalls
	var rows []stallRow
	for i := range x.List[:t.listed()] {
		rows = append(rows, stallRow{&x.List[i], i + 1})
	}
	ofCulprit := func(r *R, n int64) table.Cell { return table.Cell{N: n, Unknown: r.Culprit == request.None} }
	title := fmt.Sprintf("Prefills held up decoding %s for %s or more", words.Counted(len(x.List), "time"), words.Nearly(x.Limit))
	out := table.New("sgtrace.report.stalls/v1", title, rows, []table.Field[R]{
		table.TextColumn("stall", "number of the stall, by cost", func(r *R) string { return strconv.Itoa(r.number) }).InDetail(),
		table.TimeColumn("time", "last token before the stall, Unix time", func(r *R) trace.Time { return r.From }),
		table.TextColumn("where", "host and rank of the cause", func(r *R) string { return t.set.RankName(r.Proc) }),
		table.CountColumn("held", "number of decoding requests held up", func(r *R) int64 { return int64(len(r.Held)) }),
		table.TookColumn("longest", "longest time that one of them was held up", func(r *R) int64 { return r.Longest }),
		table.TookColumn("total", "total time that they were held up", func(r *R) int64 { return r.Total }),
		table.CountColumn("prompts", "number of prompts prefilled during the stall", func(r *R) int64 { return int64(r.Prompts) }),
		table.CountColumn("tokens", "prompt tokens computed for them during the stall", func(r *R) int64 { return r.Tokens }),
		{Column: table.Column{Name: "longest prompt of", Doc: "ID of the request with most of these tokens"}, Cell: func(r *R) table.Cell {
			if r.Culprit == request.None {
				return table.TextCell("")
			}
			return table.TextCell(t.set.Text(t.set.Requests[r.Culprit].RID))
		}},
		{Column: table.Column{Name: "its tokens", Unit: table.Count, Doc: "tokens of that request's prompt, without cached ones"}, Cell: func(r *R) table.Cell { return ofCulprit(r, r.Prompt) }},
		{Column: table.Column{Name: "chunks", Unit: table.Count, Doc: "number of chunks in which its prompt was computed"}, Cell: func(r *R) table.Cell { return ofCulprit(r, int64(r.Chunks)) }},
	})
	out.Stay("longest").Leave("prompts", "chunks")
	if x.Chunk > 0 {
		out.Note("%s", x.advice())
	}
	return out
}
