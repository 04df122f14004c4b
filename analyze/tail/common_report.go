package tail

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Findings returns what slow requests have in common, and whether there is enough data to say so.
func (t *Traits) Findings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "what slow requests have in common", Of: "finished request", N: t.N, Needed: finding.FewCompared}
	if t.N >= finding.FewCompared && len(t.List) == 0 {
		check.Reason = "nothing tells requests apart"
	}
	var out []finding.Finding
	for i := range t.List {
		if c := &t.List[i]; c.StandsOut {
			out = append(out, t.finding(c, b))
		}
	}
	return b.Price(out), check
}

// claim returns how much longer requests with the trait take. The main cause, if known, is charged first.
func (c *TraitComparison) claim(b *cause.Costs) finding.Claim {
	causes := c.Metric.causes
	if c.Part > 0 {
		causes = slices.Concat([]cause.Cause{c.Main}, causes)
	}
	longer := map[int]int64{}
	c.longer(func(request int, ns int64) { longer[request] = ns })
	return b.Amounts(longer, causes...)
}

// PlaceSubkind is the subkind of findings about where requests were computed.
const PlaceSubkind = "place"

// CachedTokens is the attribute, and the subkind of findings, of prompt tokens found in a cache.
const CachedTokens = "cached tokens"

func (t *Traits) finding(c *TraitComparison, b *cause.Costs) finding.Finding {
	f := finding.Finding{
		Subkind: c.String(), At: c.At, Text: c.sentence(), P: finding.Chance(c.P), Claim: c.claim(b), Affected: finding.AffectedOf(t.set, c.requests()),
		Metric: finding.Metric{Name: c.Metric.Name + " p50", Unit: table.Duration, Before: float64(c.Others), After: float64(c.With)},
	}
	if c.Of == Where {
		f.Subkind = PlaceSubkind
	}
	if c.Part >= 0.5 {
		f.Mostly = c.Main.String()
	}
	among := ""
	if c.Population != "" {
		among = " of " + c.Population
	}
	row := finding.Row("metric", c.Metric.Name, "attribute", c.Attribute, "value", c.Value)
	f.Evidence = []finding.Evidence{
		finding.Sentence("%.0f %% of the slowest twentieth have it, and %s %% of all requests%s", 100*c.Slowest, words.InPercent(float64(c.N)/float64(c.All)), among).
			In("common", row, "of_slowest", c.Slowest),
		finding.Sentence("%s if it made no difference, over all that was compared", words.Chance(c.P)).In("common", row, "p", c.P),
		finding.Sentence("for example %s", place.SomeRequests(t.set, c.requests())),
	}
	return f
}

// sentence says how long requests with the trait take, compared with the others.
func (c *TraitComparison) sentence() string {
	others := "the others"
	if c.Population != "" {
		others = fmt.Sprintf("the others of %s", c.Population)
	}
	text := fmt.Sprintf("requests with %s take %s %s, %s %s (p50)", c.Trait, words.Nearly(c.With), c.Metric.Of, others, words.Nearly(c.Others))
	if c.Part >= 0.5 {
		text += fmt.Sprintf("; %.0f %% of the difference is %s", 100*min(1, c.Part), c.Main.Phrase())
	}
	if len(c.Also) > 0 {
		also := order.Each(c.Also, (*Trait).String)
		text += "; they also have " + strings.Join(also, ", ")
	}
	return text
}

// Verdict says in one sentence what slow requests have in common.
func (t *Traits) Verdict() string {
	switch {
	case t.N < finding.FewCompared:
		return fmt.Sprintf("What slow requests have in common: not enough data: %s, %d needed", words.Counted(t.N, "finished request"), finding.FewCompared)
	case len(t.List) == 0:
		return "What slow requests have in common: nothing tells requests apart"
	case !t.List[0].StandsOut:
		return "Slow requests have nothing in common that others lack"
	}
	return words.Capitalized(t.List[0].sentence())
}

// maxRows is the number of comparisons shown in addition to those that stand out.
const maxRows = 10

// Report makes the table of comparisons: all of them, or those that stand out and up to maxRows others.
func (t *Traits) Report(all bool) *table.Table {
	type C = TraitComparison
	rows := t.List
	if !all {
		standing := 0
		for standing < len(rows) && rows[standing].StandsOut {
			standing++
		}
		rows = rows[:min(len(rows), standing+maxRows)]
	}
	r := table.New("sgtrace.report.common/v1", t.Verdict(), rows, []table.Field[C]{
		table.TextColumn("metric", "ttft: from the start of the outermost span to the first token; tpot: time per token after the first", func(c *C) string { return c.Metric.Name }),
		table.TextColumn("attribute", "request attribute, as the dump names it", func(c *C) string { return c.Attribute }),
		table.TextColumn("value", "value of the attribute", func(c *C) string { return c.Value }),
		table.TextColumn("among", "what distinguishes the compared requests from those that ask for other work; empty if all ask for the same kind", func(c *C) string { return c.Population }).InDetail(),
		table.CountColumn("requests", "number of requests with this value", func(c *C) int64 { return int64(c.N) }),
		table.ShareColumn("of all", "share of the requests with this value", func(c *C) float64 { return float64(c.N) / float64(c.All) }),
		table.ShareColumn("of slowest", "share of the slowest 5 % of requests with this value", func(c *C) float64 { return c.Slowest }),
		table.NsColumn("p50", "median of the requests with this value, nearest rank", func(c *C) int64 { return c.With }),
		table.NsColumn("others p50", "median of the other requests, nearest rank", func(c *C) int64 { return c.Others }),
		{Column: table.Column{Name: "p", Unit: table.Number, Doc: "probability that they are this slow by chance, beyond what size explains, corrected for all comparisons"},
			Cell: func(c *C) table.Cell { return table.Cell{Share: c.P, Unknown: c.P != c.P} }},
		table.YesColumn("stands out", "yes if this is a finding", func(c *C) bool { return c.StandsOut }),
	})
	r.Stay("of slowest", "p50", "p").Leave("of all", "requests")
	if n := len(t.List) - len(rows); n > 0 {
		r.Note("%s more, which CSV and JSON have", words.Counted(n, "comparison"))
	}
	return r
}
