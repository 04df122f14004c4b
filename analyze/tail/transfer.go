package tail

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Transfers says how long requests waited for their KV cache after it was computed.
type Transfers struct {
	N       int
	Median  int64                // ns
	Usual   distribution.SizeFit // by the number of prompt tokens
	Limit   int64                // ns beyond Usual from which a transfer is slow
	Slow    []SlowTransfer       // sorted by the two ranks, then by start
	Least   int64                // ns: the fastest slow transfer
	Longest int64                // ns: the slowest transfer
	Where   Place                // the rank with most of the time of slow transfers
	Pairs   []TransferPair
	// Since is when transfers became slow, with its 95 % bounds; zero if slow transfers occur now and then. Until is
	// when that ended; zero if it did not.
	Since, Earliest, Latest, Until trace.Time
}

// A TransferPair sums up the transfers between two lead ranks, indexes into Set.Procs.
type TransferPair struct {
	From, To int32
	distribution.Summary
	Slow int
}

// A SlowTransfer is a transfer between two lead ranks, indexes into Set.Procs, that took far longer than its size
// explains.
type SlowTransfer struct {
	Request  int // index into Set.Requests
	From, To int32
	Took     int64 // ns
	Beyond   int64 // ns more than is usual for the prompt
}

// transfers finds the KV transfers that took far longer than their size explains: longer by ten times the median
// deviation, and by the median time to the first token.
func (t *Tail) transfers() *Transfers {
	const deviations = 10
	var list []int32
	var sizes []distribution.Sized
	var first []int64
	for i := range cause.Each(t.List) {
		if a := &t.List[i]; t.disaggregated(a) {
			list = memory.Append(list, int32(i))
			sizes = memory.Append(sizes, distribution.Sized{Tokens: max(0, t.set.Requests[a.Request].Metrics.PromptTokens), Ns: a.First[cause.Transfer]})
			first = memory.Append(first, a.First.Total())
		}
	}
	if len(list) < finding.FewCompared {
		return nil
	}
	x := &Transfers{N: len(list), Usual: distribution.FitSize(slices.Clone(sizes))}
	beyond, took := memory.Make[int64](len(sizes)), memory.Make[int64](len(sizes))
	for i, s := range sizes {
		took[i], beyond[i] = s.Ns, s.Ns-x.Usual.Expected(s.Tokens)
	}
	x.Median = distribution.LowerMedian(took)
	middle := distribution.LowerMedian(slices.Clone(beyond))
	deviation := memory.Make[int64](len(beyond))
	for i, ns := range beyond {
		deviation[i] = max(ns-middle, middle-ns)
	}
	x.Limit = max(deviations*distribution.LowerMedian(deviation), distribution.LowerMedian(first))
	t.collectTransfers(x, list, beyond)
	t.dateTransfers(x, list, beyond)
	return x
}

// dateTransfers finds since when, and until when, transfers are slow: the share of slow ones is far larger than at
// other times, or most are slow and none was before.
func (t *Tail) dateTransfers(x *Transfers, list []int32, beyond []int64) {
	const surely = 0.001
	start := func(i int) trace.Time { return t.set.Requests[t.List[list[i]].Request].Start }
	byStart, slow := order.Sorted(len(list), func(i, k int) int { return cmp.Compare(start(i), start(k)) }), make([]bool, len(list))
	for k, i := range byStart {
		slow[k] = beyond[i] >= x.Limit
	}
	at := func(k int) trace.Time { return start(byStart[max(0, k)]) }
	since, until := most(changepoint.Shares(slow, changepoint.Options{Alpha: surely}), changepoint.Count(slow))
	if since != nil {
		x.Since, x.Earliest, x.Latest = at(since.At), at(since.First-1), at(since.Last)
		if until != nil {
			x.Until = at(until.At)
		}
	} else if first, last, ok := changepoint.Crowd(slow, finding.FewCompared); ok {
		x.Since, x.Earliest, x.Latest = at(first), at(first-1), at(first)
		if last+finding.FewCompared < len(slow) {
			x.Until = at(last + 1)
		}
	}
}

// most returns the changes that enclose most of what is counted. It maximizes, over runs of adjacent stretches, the
// sum of what exceeds half of the overall share. since is nil if the run starts at the beginning, and until if it
// lasts to the end.
func most(changes []changepoint.Change, count changepoint.Trues) (since, until *changepoint.Change) {
	if len(changes) == 0 {
		return nil, nil
	}
	n := changes[len(changes)-1].To
	half := count.Share(0, n) / 2
	sum, best, from := 0.0, 0.0, 0
	for i := range len(changes) + 1 {
		begin, end := 0, n
		if i > 0 {
			begin = changes[i-1].At
		}
		if i < len(changes) {
			end = changes[i].At
		}
		if sum <= 0 {
			sum, from = 0, i
		}
		if sum += (count.Share(begin, end) - half) * float64(end-begin); sum > best {
			best, since, until = sum, nil, nil
			if from > 0 {
				since = &changes[from-1]
			}
			if i < len(changes) {
				until = &changes[i]
			}
		}
	}
	return since, until
}

// collectTransfers groups the transfers by the two ranks. beyond is the ns that each took longer than usual.
func (t *Tail) collectTransfers(x *Transfers, list []int32, beyond []int64) {
	type ranks struct{ from, to int32 }
	pairs := map[ranks]*TransferPair{}
	took := map[ranks][]int64{}
	var slow tailGroup
	for i, owner := range list {
		a := &t.List[owner]
		key, ns := ranks{a.Prefill, a.Answer}, a.First[cause.Transfer]
		if pairs[key] == nil {
			pairs[key] = &TransferPair{From: a.Prefill, To: a.Answer}
		}
		took[key] = append(took[key], ns)
		if beyond[i] < x.Limit {
			continue
		}
		if pairs[key].Slow++; len(x.Slow) == 0 || ns < x.Least {
			x.Least = ns
		}
		x.Longest = max(x.Longest, ns)
		x.Slow = append(x.Slow, SlowTransfer{a.Request, a.Prefill, a.Answer, ns, beyond[i]})
		slow.add(tailUnit{owner: owner, n: 1, sum: a.First})
	}
	slices.SortStableFunc(x.Slow, func(p, q SlowTransfer) int { return slices.Compare([]int32{p.From, p.To}, []int32{q.From, q.To}) })
	x.Where = t.where(cause.Transfer, &slow)
	for key, p := range pairs {
		p.Summary = distribution.Summarize(took[key])
		x.Pairs = append(x.Pairs, *p)
	}
	slices.SortFunc(x.Pairs, func(p, q TransferPair) int { return slices.Compare([]int32{p.From, p.To}, []int32{q.From, q.To}) })
}

// requests returns the requests with slow transfers, sorted by start.
func (x *Transfers) requests() []int {
	list := order.EachRow(x.Slow, func(s *SlowTransfer) int { return s.Request })
	slices.Sort(list)
	return list
}

// to sums up the transfers to a rank, and those to other ranks. there is empty unless several ranks send to it and
// each has slow transfers: those of a single sender don't point at the receiver.
func (x *Transfers) to(rank int32) (there, elsewhere TransferPair) {
	senders := 0
	for i := range x.Pairs {
		p, sum := &x.Pairs[i], &elsewhere
		if p.To == rank {
			sum = &there
			senders++
			if p.Slow == 0 {
				return TransferPair{}, elsewhere
			}
		}
		sum.N, sum.Slow = sum.N+p.N, sum.Slow+p.Slow
	}
	if senders < 2 {
		return TransferPair{}, elsewhere
	}
	return there, elsewhere
}

// share returns the share of transfers that are slow.
func (p *TransferPair) share() float64 { return distribution.Ratio(float64(p.Slow), float64(p.N)) }

// Verdict says in one sentence whether transfers are slow, and by how much.
func (x *Transfers) Verdict() string {
	if len(x.Slow) == 0 {
		return fmt.Sprintf("None of %d KV transfers is slow; the median is %s", x.N, words.Nearly(x.Median))
	}
	return fmt.Sprintf("%d of %d KV transfers %s slow%s: %s; the median is %s", len(x.Slow), x.N, words.IsOrAre(len(x.Slow)), x.since(), x.took(), words.Nearly(x.Median))
}

// since says since when transfers are slow, if known: " since 21:56:35 ± 2 s until 21:58".
func (x *Transfers) since() (text string) {
	if x.Since != 0 {
		text += " since " + words.When(x.Since, x.Earliest, x.Latest)
	}
	if x.Until != 0 {
		text += " until " + words.TimeOfDay(x.Until)
	}
	return text
}

// took says how long slow transfers took: "139 ms to 4.58 s".
func (x *Transfers) took() string {
	least, longest := words.Nearly(x.Least), words.Nearly(x.Longest)
	if least == longest {
		return longest
	}
	return least + " to " + longest
}

func (t *Tail) transfersReport() *table.Table {
	x := t.Transfers
	type P = TransferPair
	r := table.New("sgtrace.report.transfers/v1", x.Verdict(), x.Pairs, []table.Field[P]{
		table.TextColumn("from", "lead prefill rank", func(p *P) string { return t.rankName(p.From) }),
		table.TextColumn("to", "lead decode rank", func(p *P) string { return t.rankName(p.To) }),
		table.CountColumn("n", "number of transfers", func(p *P) int64 { return int64(p.N) }),
		table.CountColumn("slow", "number of transfers that took far longer than their size explains", func(p *P) int64 { return int64(p.Slow) }),
		ns("p50", "median, nearest rank", func(p *P) int64 { return p.P50 }),
		ns("p99", "99th percentile, nearest rank", func(p *P) int64 { return p.P99 }),
		ns("max", "longest", func(p *P) int64 { return p.Max }),
	})
	r.Note("slow: %s or more beyond the usual time for the prompt, %s", words.Nearly(x.Limit), fitInWords(&x.Usual))
	return r
}

// slowTransfersReport lists all slow transfers.
func (t *Tail) slowTransfersReport() *table.Table {
	x := t.Transfers
	type S = SlowTransfer
	req := func(s *S) *request.Request { return &t.set.Requests[s.Request] }
	return table.New("sgtrace.report.slowtransfers/v1", "Slow KV transfers", x.Slow, []table.Field[S]{
		table.TextColumn("from", "lead prefill rank", func(s *S) string { return t.rankName(s.From) }),
		table.TextColumn("to", "lead decode rank", func(s *S) string { return t.rankName(s.To) }),
		table.TextColumn("from host", "prefill host", func(s *S) string { return t.hostName(s.From) }),
		table.TextColumn("to host", "decode host", func(s *S) string { return t.hostName(s.To) }),
		table.TimeColumn("time", "start of the request, Unix time", func(s *S) trace.Time { return req(s).Start }),
		table.TextColumn("rid", "the user's request ID if known, else the server's", func(s *S) string { return t.set.Text(req(s).RID) }),
		ns("took", "time that the request waited for its KV cache", func(s *S) int64 { return s.Took }),
		ns("beyond", "excess over the usual time for this prompt size", func(s *S) int64 { return s.Beyond }),
		table.CountColumn("prompt", "tokens of the prompt", func(s *S) int64 { return req(s).Metrics.PromptTokens }),
	}).Stay("took", "beyond").Leave("from host", "to host", "rid", "prompt")
}
