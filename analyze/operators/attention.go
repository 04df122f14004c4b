package operators

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// Attention is a row of operators that compute attention for inputs of one shape. Numbers are
// request.Unknown where shapes do not tell them.
type Attention struct {
	Computed
	B              int64 // sequences
	Heads, KVHeads int64
	Queries, Keys  int64 // tokens of a sequence
	Dim, ValueDim  int64 // of a head: of queries and keys, and of values
	paged          bool
}

// attentionOf returns the attention that a row computes; false if it computes none, or
// launched nothing.
func attentionOf(r *Row, gpu string) (Attention, bool) {
	rule, known := profile.AttentionOf(r.Row.Name)
	if !known || r.Working == 0 || r.GPU == 0 {
		return Attention{}, false
	}
	a := Attention{Computed: Computed{Row: *r, Type: typeOf(r.Types, rule.Query), FLOPs: math.NaN(), GPUName: gpu}, paged: rule.Paged,
		B: request.Unknown, Heads: request.Unknown, KVHeads: request.Unknown, Queries: request.Unknown, Keys: request.Unknown, Dim: request.Unknown, ValueDim: request.Unknown}
	query, key, value := dims(r.Shapes, rule.Query), dims(r.Shapes, rule.Query+1), dims(r.Shapes, rule.Query+2)
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
	a.FLOPs = a.each() * float64(r.Working)
	return a, true
}

// each returns the FLOPs of one call: those of the two products, of which causal attention
// needs half. It is NaN if that is unknown, also for causal attention with other queries than
// keys: which keys a query attends to differs between libraries.
func (a *Attention) each() float64 {
	scores := float64(a.B) * float64(a.Heads) * float64(a.Queries) * float64(a.Keys)
	both := 2 * scores * float64(a.Dim+a.ValueDim)
	switch {
	case a.Causal == profile.Bidirectional:
		return both
	case a.Causal == profile.Causal && a.Queries == a.Keys:
		return both / 2
	}
	return math.NaN()
}

func (o *Operators) attentionReport() *table.Table {
	of := func(a *Attention) *Computed { return &a.Computed }
	t := table.New("sgtrace.report.ops.attention/v1", "Attention", o.Attention, computedFields(o, of, []table.Field[Attention]{
		table.CountColumn("b", "how many sequences in a call", func(a *Attention) int64 { return a.B }),
		table.CountColumn("heads", "of queries", func(a *Attention) int64 { return a.Heads }),
		table.CountColumn("kv heads", "of keys and values", func(a *Attention) int64 { return a.KVHeads }),
		table.CountColumn("queries", "tokens that attend, in a sequence", func(a *Attention) int64 { return a.Queries }),
		table.CountColumn("keys", "tokens that they attend to", func(a *Attention) int64 { return a.Keys }),
		table.CountColumn("dim", "numbers in a query or key of a head", func(a *Attention) int64 { return a.Dim }),
		table.CountColumn("value dim", "numbers in a value of a head", func(a *Attention) int64 { return a.ValueDim }),
		table.TextColumn("causal", "whether tokens attend only to those before them", func(a *Attention) string { return a.Causal.String() }),
	}))
	o.noteLengths(t)
	notePeak(o, t, o.Attention, of)
	return t
}

// noteLengths says of which operators the lengths of sequences are unknown.
func (o *Operators) noteLengths(t *table.Table) {
	paged := 0
	for i := range o.Attention {
		if o.Attention[i].paged {
			paged++
		}
	}
	if paged > 0 {
		t.Note("not enough data for FLOPs of %s: they read keys and values from a cache, and shapes do not tell how long the sequences are", words.Counted(paged, "row"))
	}
}
