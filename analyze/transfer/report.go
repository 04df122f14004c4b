package transfer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Tables returns the transfers by pairs of ranks, and all slow ones.
func (x *Transfers) Tables() []*table.Table {
	if len(x.Slow) == 0 {
		return []*table.Table{x.pairsTable()}
	}
	return []*table.Table{x.pairsTable(), x.slowTable()}
}

// Verdict says in one sentence whether transfers are slow, and by how much.
func (x *Transfers) Verdict() string {
	if s := x.Slower; s != nil {
		return fmt.Sprintf("KV transfers take %s times as long for their size%s: %s (p50), before %s", words.ThreeDigits(s.Times), x.since(), words.Nearly(s.After), words.Nearly(s.Before))
	}
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

func (x *Transfers) pairsTable() *table.Table {
	type P = Pair
	r := table.New("sgtrace.report.transfers/v1", x.Verdict(), x.Pairs, []table.Field[P]{
		table.TextColumn("from", "lead prefill rank", func(p *P) string { return x.set.RankName(int(p.From)) }),
		table.TextColumn("to", "lead decode rank", func(p *P) string { return x.set.RankName(int(p.To)) }),
		table.CountColumn("n", "number of transfers", func(p *P) int64 { return int64(p.N) }),
		table.CountColumn("slow", "number of transfers that took far longer than sizes explain", func(p *P) int64 { return int64(p.Slow) }),
		table.TookColumn("p50", "median, nearest rank", func(p *P) int64 { return p.P50 }),
		table.TookColumn("p99", "99th percentile, nearest rank", func(p *P) int64 { return p.P99 }),
		table.TookColumn("max", "longest", func(p *P) int64 { return p.Max }),
	})
	var fits []string
	for _, group := range slices.Sorted(maps.Keys(x.Usual)) {
		f := x.Usual[group]
		fits = append(fits, f.Text())
	}
	r.Note("slow: %s or more beyond the usual time for the prompt, %s, and for those sent before it", words.Nearly(x.Limit), strings.Join(fits, " or "))
	return r
}

// slowTable lists all slow transfers.
func (x *Transfers) slowTable() *table.Table {
	type S = Slow
	req := func(s *S) *request.Request { return &x.set.Requests[s.Request] }
	return table.New("sgtrace.report.slowtransfers/v1", "Slow KV transfers", x.Slow, []table.Field[S]{
		table.TextColumn("from", "lead prefill rank", func(s *S) string { return x.set.RankName(int(s.From)) }),
		table.TextColumn("to", "lead decode rank", func(s *S) string { return x.set.RankName(int(s.To)) }),
		table.TextColumn("from host", "prefill host", func(s *S) string { return x.set.HostOf(int(s.From)) }),
		table.TextColumn("to host", "decode host", func(s *S) string { return x.set.HostOf(int(s.To)) }),
		table.TimeColumn("time", "start of the request, Unix time", func(s *S) trace.Time { return req(s).Start }),
		table.TextColumn("rid", "the user's request ID if known, else the server's", func(s *S) string { return x.set.Text(req(s).RID) }),
		table.TookColumn("took", "time of the transfer according to both ends", func(s *S) int64 { return s.Took }),
		table.TookColumn("beyond", "excess over the usual time for this prompt size, and for those sent before it", func(s *S) int64 { return s.Beyond }),
		table.CountColumn("prompt", "tokens of the prompt", func(s *S) int64 { return req(s).Metrics.PromptTokens }),
	}).Stay("took", "beyond").Leave("from host", "to host", "rid", "prompt")
}
