package routing

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// Report makes the tables.
func (r *Routing) Report() *document.Document {
	d := document.Of(r.sourceTable(), r.layerTable(), r.rankTable(), r.hottestTable(), r.passTable())
	d.LimitAll = true
	return d
}

// Texts that several tables share.
const (
	loggedDoc = "as SGLang's log has it: the mean tokens of a GPU by those of the busiest one; a layer without tokens counts as 1"
	waitsDoc  = "part of MoE time that GPUs wait for the busiest one of each layer and pass, if that time grows as tokens do"
	chanceDoc = "what that would be if each token went to any GPU"
	timesDoc  = "its tokens, by the mean of all ranks"
	tokensDoc = "tokens that experts got: each token once for each expert that it chose"
)

func fileOf[T any](of func(*T) *Source) table.Field[T] {
	return table.FileField(func(x *T) string { return of(x).Name })
}

func factor[T any](name, doc string, of func(*T) float64) table.Field[T] {
	return table.Field[T]{Column: table.Column{Name: name, Unit: table.Factor, Doc: doc}, Cell: func(x *T) table.Cell {
		v := of(x)
		c := table.RealCell(v)
		c.Unknown = c.Unknown || v == 0
		return c
	}}
}

func count[T any](name, doc string, of func(*T) int64) table.Field[T] {
	return table.Field[T]{Column: table.Column{Name: name, Unit: table.Count, Doc: doc}, Cell: func(x *T) table.Cell {
		n := of(x)
		return table.Cell{N: n, Unknown: n < 0}
	}}
}

func ep(rank int) string {
	if rank < 0 {
		return ""
	}
	return fmt.Sprintf("EP%d", rank)
}

// shown returns a share that needs the number of GPUs, or NaN if that is unknown.
func (s *Source) shown(v float64) float64 {
	if s.EP == 0 || s.Recording == nil {
		return math.NaN()
	}
	return v
}

func (r *Routing) sourceTable() *table.Table {
	known := func(n int) int64 {
		if n == 0 {
			return -1
		}
		return int64(n)
	}
	t := table.New("sgtrace.report.experts/v1", "Tokens by expert", r.Sources, []table.Field[*Source]{
		fileOf(func(s **Source) *Source { return *s }),
		table.TimeField("time", "when the dump was written; of a log, the first pass", func(s **Source) (trace.Time, bool) { return (*s).First, (*s).First != 0 }),
		table.CountColumn("passes", "forward passes", func(s **Source) int64 { return int64((*s).Passes) }),
		table.CountColumn("tokens", tokensDoc+"; of a log, as it has them", func(s **Source) int64 { return (*s).Tokens }),
		count("layers", "layers with tokens", func(s **Source) int64 { return known((*s).Layers) }),
		count("experts", "experts of a layer that are counted", func(s **Source) int64 { return known((*s).Experts) }),
		count("ep", "GPUs that share the experts", func(s **Source) int64 { return known((*s).EP) }),
		table.TextColumn("ep by", "how that is known", func(s **Source) string { return (*s).By }),
		table.ShareColumn("balancedness", "mean over passes and layers, "+loggedDoc, func(s **Source) float64 {
			if (*s).EP == 0 && (*s).Recording != nil {
				return math.NaN()
			}
			return (*s).Logged
		}),
		table.ShareColumn("lowest", "the balancedness of the least even pass", func(s **Source) float64 {
			if (*s).EP == 0 && (*s).Recording != nil {
				return math.NaN()
			}
			return (*s).Lowest
		}),
		table.ShareColumn("waits", waitsDoc, func(s **Source) float64 { return (*s).shown((*s).waits()) }),
		table.ShareColumn("by chance", chanceDoc, func(s **Source) float64 { return (*s).shown((*s).chance()) }),
		table.ShareColumn("excess", "what chance does not explain", func(s **Source) float64 { return (*s).shown((*s).excess()) }),
		table.ShareColumn("waits placed", "the same with experts placed by what they got, those with most first: a bound", func(s **Source) float64 { return (*s).shown((*s).Placed) }),
		table.TextColumn("hottest", "the rank that got most", func(s **Source) string { return ep((*s).Hot) }),
		factor("of mean", timesDoc, func(s **Source) float64 {
			if (*s).Hot < 0 {
				return 0
			}
			return (*s).ByRank[(*s).Hot].Times
		}),
		table.ShareColumn("alone", "by how much MoE time would be shorter if that rank got no more than the one behind it", func(s **Source) float64 { return (*s).shown((*s).Single) }),
	})
	for _, s := range r.Sources {
		s.notes(t)
	}
	return t
}

// notes adds what is special about a source.
func (s *Source) notes(t *table.Table) {
	rec := s.Recording
	if s.EP == 0 {
		t.Note("%s: nothing says how many GPUs share the experts, so that which GPU has which is not known: give --ep-size", s.Name)
	}
	if rec == nil {
		return
	}
	if s.By == assumedSize {
		t.Note("%s: that %d GPUs share the experts is assumed, as so many ranks left files; --ep-size says otherwise", s.Name, s.EP)
	}
	if rec.Times > 1 {
		t.Note("%s: all counts are multiples of %d, as of ranks that share an attention: each token is counted once here", s.Name, rec.Times)
	}
	if rec.Partial > 0 {
		t.Note("%s: %s left out that not all ranks have", s.Name, words.Counted(rec.Partial, "pass"))
	}
	if n := rec.Layers - s.Layers; n > 0 {
		t.Note("%s: %s without tokens: they have no experts", s.Name, words.Counted(n, "layer"))
	}
	if !rec.Physical && rec.Map == nil && s.EP > 0 {
		t.Note("%s: the file does not say where experts are: they are assumed to be in order, as without EPLB", s.Name)
	}
	if rec.Whole && rec.Ring {
		t.Note("%s: passes are added up: single ones were less even", s.Name)
	}
	if rec.Average > 0 {
		t.Note("%s: the server itself measured a balancedness of %.3f over its last passes", s.Name, rec.Average)
	}
}

// rowsOf returns the rows of all sources.
func rowsOf[R any](r *Routing, of func(*Source) []R) (rows []*R) {
	for _, s := range r.Sources {
		list := of(s)
		for i := range list {
			rows = append(rows, &list[i])
		}
	}
	return rows
}

func (r *Routing) layerTable() *table.Table {
	rows := rowsOf(r, func(s *Source) []Layer { return s.ByLayer })
	return table.New("sgtrace.report.experts.layers/v1", "Layers", rows, []table.Field[*Layer]{
		fileOf(func(x **Layer) *Source { return (*x).Of }),
		table.TextColumn("layer", "of the model", func(x **Layer) string { return fmt.Sprint((*x).Layer) }),
		table.CountColumn("tokens", tokensDoc, func(x **Layer) int64 { return (*x).Tokens }),
		table.ShareColumn("balancedness", "mean over passes, "+loggedDoc, func(x **Layer) float64 { return (*x).Of.shown((*x).Logged) }),
		table.ShareColumn("waits", waitsDoc, func(x **Layer) float64 { return (*x).Of.shown((*x).waits()) }),
		table.ShareColumn("by chance", chanceDoc, func(x **Layer) float64 { return (*x).Of.shown((*x).chance()) }),
		table.TextColumn("hottest", "the rank that got most in all passes", func(x **Layer) string { return ep((*x).Hot) }),
		factor("of mean", timesDoc, func(x **Layer) float64 { return (*x).Times }),
		count("expert", "the expert that got most", func(x **Layer) int64 { return int64((*x).Top.Expert) }),
		table.TextColumn("expert rank", "the rank that it is on; empty if it is on several", func(x **Layer) string { return ep((*x).Top.Rank) }),
		factor("expert of mean", "its tokens, by the mean of all experts of the layer", func(x **Layer) float64 { return (*x).Top.Times }),
	})
}

func (r *Routing) rankTable() *table.Table {
	rows := rowsOf(r, func(s *Source) []Rank { return s.ByRank })
	return table.New("sgtrace.report.experts.ranks/v1", "Ranks", rows, []table.Field[*Rank]{
		fileOf(func(x **Rank) *Source { return (*x).Of }),
		table.TextColumn("rank", "that has a part of the experts", func(x **Rank) string { return ep((*x).Rank) }),
		table.CountColumn("tokens", "tokens that its experts got, in all layers", func(x **Rank) int64 { return int64(math.Round((*x).Tokens)) }),
		factor("of mean", timesDoc, func(x **Rank) float64 { return (*x).Times }),
		table.CountColumn("busiest", "layers in which no rank got more", func(x **Rank) int64 { return int64((*x).Busiest) }),
		count("layer", "the layer of its hottest expert", func(x **Rank) int64 {
			if (*x).Top.Expert < 0 {
				return -1
			}
			return int64((*x).Top.Layer)
		}),
		count("expert", "that expert", func(x **Rank) int64 { return int64((*x).Top.Expert) }),
		factor("expert of mean", "its tokens, by the mean of all experts of the layer", func(x **Rank) float64 { return (*x).Top.Times }),
		{Column: table.Column{Name: "kernels", Unit: table.Duration, Doc: "time of kernels that multiply matrices of experts, in profiles of the rank"}, Cell: func(x **Rank) table.Cell {
			return table.Cell{N: (*x).Kernels, Unknown: (*x).Kernels == 0}
		}},
		factor("kernels of mean", "that time, by the mean of all ranks with profiles", func(x **Rank) float64 { return (*x).Slower }),
	})
}

func (r *Routing) hottestTable() *table.Table {
	return table.New("sgtrace.report.experts.hottest/v1", "Hottest experts", r.Hottest, []table.Field[Expert]{
		fileOf(func(x *Expert) *Source { return x.Of }),
		table.TextColumn("layer", "of the model", func(x *Expert) string { return fmt.Sprint(x.Layer) }),
		table.TextColumn("expert", "the logical one, where the file tells it", func(x *Expert) string { return fmt.Sprint(x.Expert) }),
		table.TextColumn("rank", "that it is on; empty if it is on several, or nobody knows", func(x *Expert) string { return ep(x.Rank) }),
		table.CountColumn("tokens", "that it got", func(x *Expert) int64 { return int64(math.Round(x.Tokens)) }),
		factor("of mean", "by the mean of all experts of the layer", func(x *Expert) float64 { return x.Times }),
	})
}

func (r *Routing) passTable() *table.Table {
	rows := rowsOf(r, func(s *Source) []Pass { return s.ByPass })
	return table.New("sgtrace.report.experts.passes/v1", "Forward passes", rows, []table.Field[*Pass]{
		fileOf(func(x **Pass) *Source { return (*x).Of }),
		table.TextColumn("pass", "its number in the server; of a file of the mode stat, a place in its buffer", func(x **Pass) string { return fmt.Sprint((*x).Pass) }),
		table.CountColumn("tokens", tokensDoc, func(x **Pass) int64 { return (*x).Tokens }),
		table.ShareColumn("balancedness", loggedDoc, func(x **Pass) float64 { return (*x).Of.shown((*x).Logged) }),
		table.ShareColumn("waits", waitsDoc, func(x **Pass) float64 { return (*x).Of.shown((*x).waits()) }),
		table.ShareColumn("by chance", chanceDoc, func(x **Pass) float64 { return (*x).Of.shown((*x).chance()) }),
	})
}
