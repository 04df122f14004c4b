package operators

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// A Computed is a row whose floating-point operations follow from shapes.
type Computed struct {
	Row
	Type    string  // of the numbers: "c10::BFloat16"
	FLOPs   float64 // of all calls that launched work; NaN is unknown
	GPUName string  // "" is unknown, or several
}

// achieved returns the FLOPs per second of GPU time, in tera.
func (c *Computed) achieved() float64 { return c.FLOPs / float64(c.GPU) / 1e3 }

// peak returns the peak of the GPU for the type, in TFLOP/s; NaN is unknown.
func (c *Computed) peak() float64 { return peakOf(c.GPUName, c.Type) }

// findComputed finds the rows that multiply matrices, and those that compute attention.
func (o *Operators) findComputed(set *profile.Set) {
	all := set.GPU(profilewalk.NoRank)
	for i := range o.Shapes {
		r := &o.Shapes[i]
		gpu := all
		if o.ByRank {
			gpu = set.GPU(r.Row.RankIndex)
		}
		if g, ok := gemmOf(r, gpu); ok {
			o.GEMMs = append(o.GEMMs, g)
		}
		if a, ok := attentionOf(r, gpu); ok {
			o.Attention = append(o.Attention, a)
		}
	}
	slices.SortStableFunc(o.GEMMs, func(a, b GEMM) int { return cmp.Compare(b.GPU, a.GPU) })
	slices.SortStableFunc(o.Attention, func(a, b Attention) int { return cmp.Compare(b.GPU, a.GPU) })
}

// computedFields returns the columns of rows with FLOPs, including those in shape.
func computedFields[T any](o *Operators, of func(*T) *Computed, shape []table.Field[T]) []table.Field[T] {
	fields := append(profilewalk.RankFields(o.ByRank, func(row *T) *profilewalk.Row { return &of(row).Row.Row }),
		table.NsColumn("gpu", "GPU time of the operator, including operators called within it", func(row *T) int64 { return of(row).GPU }),
		table.CountColumn("calls", "number of calls that launched work", func(row *T) int64 { return of(row).Working }))
	fields = append(fields, shape...)
	peak := table.NumberColumn("peak", "peak of the GPU by its data sheet, in TFLOP/s", func(row *T) float64 { return of(row).peak() }).InDetail()
	gpu := table.TextColumn("gpu name", "name of the GPU", func(row *T) string { return of(row).GPUName }).InDetail()
	return append(fields,
		table.NumberColumn("gflop", "GFLOP (10^9 floating-point operations) per call", func(row *T) float64 { return of(row).FLOPs / float64(of(row).Working) / 1e9 }),
		table.NumberColumn("tflops", "achieved TFLOP/s of GPU time", func(row *T) float64 { return of(row).achieved() }),
		table.ShareColumn("of peak", "tflops as a share of peak", func(row *T) float64 { return of(row).achieved() / of(row).peak() }),
		peak, gpu,
		table.TextColumn("type", "data type", func(row *T) string { return of(row).Type }),
		table.TextColumn("operator", "name of the operator", func(row *T) string { return of(row).Row.Row.Name }))
}

// notePeak says which GPU the peaks are of, or why there are none.
func notePeak[T any](o *Operators, t *table.Table, rows []T, of func(*T) *Computed) {
	if len(rows) == 0 {
		return
	}
	name, unknown := of(&rows[0]).GPUName, 0
	for i := range rows {
		if math.IsNaN(of(&rows[i]).peak()) {
			unknown++
		}
	}
	switch {
	case unknown < len(rows) && name != "" && !o.ByRank:
		t.Note("peak of %s without sparsity, from its data sheet", name)
	case unknown == len(rows) && name == "":
		t.Note("no peak: the files do not name the GPU, or name several")
	case unknown == len(rows):
		t.Note("no peak of %s is known for these types", name)
	}
}

// peakOf returns the peak of a GPU for a type of numbers; NaN is unknown.
func peakOf(gpu, typ string) float64 {
	g, ok := GPUOf(gpu)
	if !ok {
		return math.NaN()
	}
	return g.peak(typ)
}

// A GEMM is a row of operators that multiply matrices of one shape: M x K by K x N, for each
// of a batch.
type GEMM struct {
	Computed   // FLOPs are 2BMNK per call, and BMN more if something is added
	B, M, N, K int64
}

// gemmOf returns the product that a row computes; ok is false if it computes none, launched nothing, or
// its shapes do not fit.
func gemmOf(r *Row, gpu string) (GEMM, bool) {
	if r.Working == 0 || r.GPU == 0 {
		return GEMM{}, false
	}
	of, ok := gemmOfInputs(r.Row.Name, parseInputs(r.Shapes, r.Types))
	if !ok {
		return GEMM{}, false
	}
	return GEMM{Computed: Computed{Row: *r, Type: of.Type, FLOPs: of.FLOPs * float64(r.Working), GPUName: gpu}, B: of.B, M: of.M, N: of.N, K: of.K}, true
}

// Attention is a row of operators that compute attention for inputs of one shape. Numbers that shapes
// do not show are request.Unknown.
type Attention struct {
	Computed
	B              int64 // sequences
	Heads, KVHeads int64
	Queries, Keys  int64 // tokens of a sequence
	Dim, ValueDim  int64 // of a head: of queries and keys, and of values
	paged          bool
}

// attentionOf returns the attention that a row computes; ok is false if it computes none, or launched
// nothing.
func attentionOf(r *Row, gpu string) (Attention, bool) {
	rule, known := profile.AttentionOf(r.Row.Name)
	if !known || r.Working == 0 || r.GPU == 0 {
		return Attention{}, false
	}
	in := parseInputs(r.Shapes, r.Types)
	a := Attention{Computed: Computed{Row: *r, Type: in.Type(rule.Query), FLOPs: math.NaN(), GPUName: gpu}, paged: rule.Paged,
		B: request.Unknown, Heads: request.Unknown, KVHeads: request.Unknown, Queries: request.Unknown, Keys: request.Unknown, Dim: request.Unknown, ValueDim: request.Unknown}
	query, key, value := in.Dims(rule.Query), in.Dims(rule.Query+1), in.Dims(rule.Query+2)
	if rule.Paged || len(query) != 4 || len(key) != 4 || len(value) != 4 {
		return a, true
	}
	heads, tokens := 2, 1
	if rule.HeadsFirst {
		heads, tokens = 1, 2
	}
	if query[0] != key[0] || query[3] != key[3] || key[tokens] != value[tokens] {
		return a, true
	}
	a.B, a.Heads, a.KVHeads, a.Queries, a.Keys, a.Dim, a.ValueDim = query[0], query[heads], key[heads], query[tokens], key[tokens], query[3], value[3]
	// Both products of each call count.
	a.FLOPs = 2 * float64(a.B) * float64(a.Heads) * attentionPairs(a.Queries, a.Keys, a.Mask) * float64(a.Dim+a.ValueDim) * float64(r.Working)
	return a, true
}

// windowColumn returns the column with how many keys a token attends to.
func windowColumn[T any](of func(*T) profile.Mask) table.Field[T] {
	return table.CountColumn("window", "sliding window of attention: most keys that a token attends to, including its own; empty if unlimited or unknown", func(r *T) int64 {
		if w := of(r).Window; w > 0 {
			return int64(w)
		}
		return request.Unknown
	}).InDetail()
}

func (o *Operators) attentionReport() *table.Table {
	of := func(a *Attention) *Computed { return &a.Computed }
	t := table.New("sgtrace.report.ops.attention/v1", "Attention", o.Attention, computedFields(o, of, []table.Field[Attention]{
		table.CountColumn("b", "number of sequences in a call", func(a *Attention) int64 { return a.B }),
		table.CountColumn("heads", "number of query heads", func(a *Attention) int64 { return a.Heads }),
		table.CountColumn("kv heads", "number of KV heads", func(a *Attention) int64 { return a.KVHeads }),
		table.CountColumn("queries", "query tokens per sequence", func(a *Attention) int64 { return a.Queries }),
		table.CountColumn("keys", "key tokens per sequence", func(a *Attention) int64 { return a.Keys }),
		table.CountColumn("dim", "head dimension of queries and keys", func(a *Attention) int64 { return a.Dim }),
		table.CountColumn("value dim", "head dimension of values", func(a *Attention) int64 { return a.ValueDim }),
		table.TextColumn("causal", "whether attention is causal", func(a *Attention) string { return a.Mask.Causal.String() }),
		windowColumn(func(a *Attention) profile.Mask { return a.Mask }),
	}))
	o.noteLengths(t)
	notePeak(o, t, o.Attention, of)
	return t
}

// noteLengths says for how many rows the lengths of sequences, and so FLOPs, are unknown.
func (o *Operators) noteLengths(t *table.Table) {
	paged := 0
	for i := range o.Attention {
		if o.Attention[i].paged {
			paged++
		}
	}
	if paged > 0 {
		t.Note("not enough data for FLOPs of %s: keys and values come from a cache, and shapes do not tell how long the sequences are", words.Counted(paged, "row"))
	}
}
