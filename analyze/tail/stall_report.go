package tail

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
)

// StallTopic is the topic of findings of stalls that one prompt made, and CrowdTopic of those
// that many made together.
const (
	StallTopic = "stalls"
	CrowdTopic = "stalls of many prompts"
)

// mostOf is how much of what was computed in a stall makes a prompt its culprit.
const mostOf = 0.5

// prefillBound is from which part of the time of requests on prefills leave too little of it
// for decoding.
const prefillBound = 0.5

// alone reports whether one prompt made a stall.
func (x *Stall) alone() bool { return x.Culprit != request.None && x.Share >= mostOf }

// Stalls are a finding if one held up so many decodes, and all of them cost so much of
// the time of requests: every unified server has a few.
const (
	fewHeld    = 5
	stallsCost = 0.01
)

// StallFindings tells which prompts held up the decoding of others, and what would have
// helped.
func (t *Tail) StallFindings(b *cause.Costs) ([]finding.Finding, finding.Judged) {
	judged := finding.Judged{What: "prompts that hold up decoding", Of: "finished request", N: len(t.List), Needed: finding.FewCompared}
	x := t.Stalls
	if x == nil {
		judged.Reason = "no gaps between tokens were traced"
		return nil, judged
	}
	cost := b.Part(float64(x.Total))
	if len(x.List) == 0 || len(x.List[0].Held) < fewHeld || cost < stallsCost {
		return nil, judged
	}
	worst := &x.List[0]
	f := finding.Finding{
		Topic: StallTopic, Cost: cost, Claim: b.Amounts(x.held(), cause.Interference), At: t.placeOf(int32(worst.Proc)), Text: t.stallSentence(worst), Affected: finding.AffectedOf(t.set, t.heldUp()),
		Metric: finding.Metric{Name: "longest gap between tokens", Unit: table.Duration, Before: math.NaN(), After: float64(worst.Longest)},
		Evidence: []finding.Evidence{finding.Sentence("%s of %s were computed meanwhile", words.Counted(int(worst.Tokens), "token"), words.Counted(worst.Prompts, "prompt")).
			In("stalls", finding.Row("stall", "1"), "tokens", float64(worst.Tokens))},
	}
	if !worst.alone() {
		f.Topic = CrowdTopic
	}
	if n := len(x.List); n > 1 {
		f.Text += fmt.Sprintf("; decoding stalls %d times for %s or more", n, words.Nearly(x.Limit))
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
	return []finding.Finding{f}, judged
}

// held is for how long decodes of requests, indexes into Set.Requests, were held up, in ns.
func (x *Stalls) held() map[int]int64 {
	held := map[int]int64{}
	for i := range x.List {
		for k, r := range x.List[i].Held {
			held[r] += x.List[i].HeldFor[k]
		}
	}
	return held
}

// stallSentence names the prompt that held up decodes, or the longest of several.
func (t *Tail) stallSentence(x *Stall) string {
	what := words.Counted(x.Prompts, "prompt") + " of requests that are not known"
	switch {
	case x.Culprit == request.None:
	case x.alone():
		what = fmt.Sprintf("the %s-token prompt of %s", words.Thousands(x.Prompt), t.set.Text(t.set.Requests[x.Culprit].RID))
	default:
		what = fmt.Sprintf("%d prompts (%s tokens; the longest has %s and is that of %s)",
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

// advice says what chunks would have done.
func (x *Stalls) advice() string {
	return fmt.Sprintf("in chunks of %s tokens with a decode step after each, no decode would have been held up for longer than about %s",
		words.Thousands(x.Chunk), words.Nearly(x.ChunkTakes))
}

// interference is the part of the time of all requests in which others were prefilled.
func (t *Tail) interference() float64 {
	held, whole := int64(0), int64(0)
	for i := range t.List {
		held, whole = held+t.List[i].E2E[cause.Interference], whole+t.List[i].E2E.Total()
	}
	return distribution.Ratio(float64(held), float64(whole))
}

// heldUp lists the requests that were held up at any time, as indexes into Set.Requests.
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

// listed is how many stalls the table has.
func (t *Tail) listed() int { return min(t.Options.Slowest, len(t.Stalls.List)) }

// A stallRow is a stall, with its number from 1 on.
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
	title := fmt.Sprintf("Prefills held up decoding %d times for %s or more", len(x.List), words.Nearly(x.Limit))
	out := table.New("sgtrace.report.stalls/v1", title, rows, []table.Field[R]{
		{Column: table.Column{Name: "stall", Doc: "its number, the one that cost most first", Detail: true}, Cell: func(r *R) table.Cell { return table.TextCell(strconv.Itoa(r.number)) }},
		{Column: table.Column{Name: "time", Unit: table.Instant, Doc: "last token before it, Unix time"}, Cell: func(r *R) table.Cell { return table.InstantCell(r.From) }},
		{Column: table.Column{Name: "where", Doc: "host and rank"}, Cell: func(r *R) table.Cell { return table.TextCell(t.rankName(int32(r.Proc))) }},
		{Column: table.Column{Name: "held", Unit: table.Count, Doc: "decodes that were held up"}, Cell: func(r *R) table.Cell { return table.Cell{N: int64(len(r.Held))} }},
		{Column: table.Column{Name: "longest", Unit: table.Duration, Scale: "duration", Doc: "that one of them was"}, Cell: func(r *R) table.Cell { return table.Cell{N: r.Longest} }},
		{Column: table.Column{Name: "total", Unit: table.Duration, Scale: "duration", Doc: "that all of them were"}, Cell: func(r *R) table.Cell { return table.Cell{N: r.Total} }},
		{Column: table.Column{Name: "prompts", Unit: table.Count, Doc: "that were prefilled meanwhile"}, Cell: func(r *R) table.Cell { return table.Cell{N: int64(r.Prompts)} }},
		{Column: table.Column{Name: "tokens", Unit: table.Count, Doc: "that were computed for them"}, Cell: func(r *R) table.Cell { return table.Cell{N: r.Tokens} }},
		{Column: table.Column{Name: "longest prompt of", Doc: "rid of the request that most of these tokens were for"}, Cell: func(r *R) table.Cell {
			if r.Culprit == request.None {
				return table.TextCell("")
			}
			return table.TextCell(t.set.Text(t.set.Requests[r.Culprit].RID))
		}},
		{Column: table.Column{Name: "its tokens", Unit: table.Count, Doc: "of its prompt, without cached ones"}, Cell: func(r *R) table.Cell { return ofCulprit(r, r.Prompt) }},
		{Column: table.Column{Name: "chunks", Unit: table.Count, Doc: "in which its prompt was computed"}, Cell: func(r *R) table.Cell { return ofCulprit(r, int64(r.Chunks)) }},
	})
	out.Stay("longest").Leave("prompts", "chunks")
	if x.Chunk > 0 {
		out.Note("%s", x.advice())
	}
	return out
}
