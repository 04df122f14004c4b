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
	loggedDoc = "mean tokens per GPU divided by those of the busiest GPU, as in SGLang's log; a layer without tokens counts as 1"
	waitsDoc  = "share of MoE time that GPUs wait for the busiest one of each layer and pass, if that time is proportional to tokens"
	chanceDoc = "what waits would be if each token went to a random GPU"
	timesDoc  = "tokens of the rank divided by the mean of all ranks"
	tokensDoc = "tokens routed to experts: each token counts once per expert that it chose"
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
		table.TimeField("time", "when the dump was written; for a log, the first pass", func(s **Source) (trace.Time, bool) { return (*s).First, (*s).First != 0 }),
		table.CountColumn("passes", "number of forward passes", func(s **Source) int64 { return int64((*s).Passes) }),
		table.CountColumn("tokens", tokensDoc+"; for a log, as logged", func(s **Source) int64 { return (*s).Tokens }),
		count("layers", "number of layers with tokens", func(s **Source) int64 { return known((*s).Layers) }),
		count("experts", "experts per layer that are counted", func(s **Source) int64 { return known((*s).Experts) }),
		count("ep", "number of GPUs that share the experts", func(s **Source) int64 { return known((*s).EP) }),
		table.TextColumn("ep by", "how the number of GPUs is known", func(s **Source) string { return (*s).By }),
		table.ShareColumn("balancedness", "mean over passes and layers of "+loggedDoc, func(s **Source) float64 {
			if (*s).EP == 0 && (*s).Recording != nil {
				return math.NaN()
			}
			return (*s).Logged
		}),
		table.ShareColumn("lowest", "balancedness of the least balanced pass", func(s **Source) float64 {
			if (*s).EP == 0 && (*s).Recording != nil {
				return math.NaN()
			}
			return (*s).Lowest
		}),
		table.ShareColumn("waits", waitsDoc, func(s **Source) float64 { return (*s).shown((*s).waits()) }),
		table.ShareColumn("by chance", chanceDoc, func(s **Source) float64 { return (*s).shown((*s).chance()) }),
		table.ShareColumn("excess", "waits beyond what chance explains", func(s **Source) float64 { return (*s).shown((*s).excess()) }),
		table.ShareColumn("waits placed", "waits if experts were placed greedily, those with most tokens first: a bound for better placement without replicas", func(s **Source) float64 { return (*s).shown((*s).Placed) }),
		table.TextColumn("hottest", "rank with the most tokens", func(s **Source) string { return ep((*s).Hot) }),
		factor("of mean", timesDoc, func(s **Source) float64 {
			if (*s).Hot < 0 {
				return 0
			}
			return (*s).ByRank[(*s).Hot].Times
		}),
		table.ShareColumn("alone", "share of MoE time saved if the hottest rank got no more than the second", func(s **Source) float64 { return (*s).shown((*s).Single) }),
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
		table.TextColumn("layer", "layer of the model", func(x **Layer) string { return fmt.Sprint((*x).Layer) }),
		table.CountColumn("tokens", tokensDoc, func(x **Layer) int64 { return (*x).Tokens }),
		table.ShareColumn("balancedness", "mean over passes of "+loggedDoc, func(x **Layer) float64 { return (*x).Of.shown((*x).Logged) }),
		table.ShareColumn("waits", waitsDoc, func(x **Layer) float64 { return (*x).Of.shown((*x).waits()) }),
		table.ShareColumn("by chance", chanceDoc, func(x **Layer) float64 { return (*x).Of.shown((*x).chance()) }),
		table.TextColumn("hottest", "rank with the most tokens over all passes", func(x **Layer) string { return ep((*x).Hot) }),
		factor("of mean", timesDoc, func(x **Layer) float64 { return (*x).Times }),
		count("expert", "expert with the most tokens", func(x **Layer) int64 { return int64((*x).Top.Expert) }),
		table.TextColumn("expert rank", "rank of that expert; empty if it is on several", func(x **Layer) string { return ep((*x).Top.Rank) }),
		factor("expert of mean", "tokens of that expert divided by the mean of all experts of the layer", func(x **Layer) float64 { return (*x).Top.Times }),
	})
}

func (r *Routing) rankTable() *table.Table {
	rows := rowsOf(r, func(s *Source) []Rank { return s.ByRank })
	return table.New("sgtrace.report.experts.ranks/v1", "Ranks", rows, []table.Field[*Rank]{
		fileOf(func(x **Rank) *Source { return (*x).Of }),
		table.TextColumn("rank", "rank that holds some of the experts", func(x **Rank) string { return ep((*x).Rank) }),
		table.CountColumn("tokens", "tokens routed to its experts, over all layers", func(x **Rank) int64 { return int64(math.Round((*x).Tokens)) }),
		factor("of mean", timesDoc, func(x **Rank) float64 { return (*x).Times }),
		table.CountColumn("busiest", "number of layers in which no rank got more tokens", func(x **Rank) int64 { return int64((*x).Busiest) }),
		count("layer", "layer of its hottest expert", func(x **Rank) int64 {
			if (*x).Top.Expert < 0 {
				return -1
			}
			return int64((*x).Top.Layer)
		}),
		count("expert", "its hottest expert", func(x **Rank) int64 { return int64((*x).Top.Expert) }),
		factor("expert of mean", "tokens of that expert divided by the mean of all experts of the layer", func(x **Rank) float64 { return (*x).Top.Times }),
		{Column: table.Column{Name: "kernels", Unit: table.Duration, Doc: "time of expert GEMM kernels in profiles of the rank"}, Cell: func(x **Rank) table.Cell {
			return table.Cell{N: (*x).Kernels, Unknown: (*x).Kernels == 0}
		}},
		factor("kernels of mean", "kernels divided by the mean of all ranks with profiles", func(x **Rank) float64 { return (*x).Slower }),
	})
}

func (r *Routing) hottestTable() *table.Table {
	return table.New("sgtrace.report.experts.hottest/v1", "Hottest experts", r.Hottest, []table.Field[Expert]{
		fileOf(func(x *Expert) *Source { return x.Of }),
		table.TextColumn("layer", "layer of the model", func(x *Expert) string { return fmt.Sprint(x.Layer) }),
		table.TextColumn("expert", "expert; the logical one if the file has it", func(x *Expert) string { return fmt.Sprint(x.Expert) }),
		table.TextColumn("rank", "rank of the expert; empty if it is on several or unknown", func(x *Expert) string { return ep(x.Rank) }),
		table.CountColumn("tokens", "tokens routed to the expert", func(x *Expert) int64 { return int64(math.Round(x.Tokens)) }),
		factor("of mean", "tokens divided by the mean of all experts of the layer", func(x *Expert) float64 { return x.Times }),
	})
}

func (r *Routing) passTable() *table.Table {
	rows := rowsOf(r, func(s *Source) []Pass { return s.ByPass })
	return table.New("sgtrace.report.experts.passes/v1", "Forward passes", rows, []table.Field[*Pass]{
		fileOf(func(x **Pass) *Source { return (*x).Of }),
		table.TextColumn("pass", "pass number in the server; in files of mode stat, the position in its buffer", func(x **Pass) string { return fmt.Sprint((*x).Pass) }),
		table.CountColumn("tokens", tokensDoc, func(x **Pass) int64 { return (*x).Tokens }),
		table.ShareColumn("balancedness", loggedDoc, func(x **Pass) float64 { return (*x).Of.shown((*x).Logged) }),
		table.ShareColumn("waits", waitsDoc, func(x **Pass) float64 { return (*x).Of.shown((*x).waits()) }),
		table.ShareColumn("by chance", chanceDoc, func(x **Pass) float64 { return (*x).Of.shown((*x).chance()) }),
	})
}
