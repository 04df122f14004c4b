package operators

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
)

// A Computed is a row whose floating-point operations follow from shapes.
type Computed struct {
	Row
	Type    string  // of the numbers: "c10::BFloat16"
	FLOPs   float64 // of all calls that launched work; NaN is unknown
	GPUName string  // "" is unknown, or several
}

// Achieved returns the FLOPs in a second of GPU time, in tera.
func (c *Computed) Achieved() float64 { return c.FLOPs / float64(c.GPU) / 1e3 }

// Peak returns what the GPU is made for, in TFLOP/s; NaN is unknown.
func (c *Computed) Peak() float64 { return peakOf(c.GPUName, c.Type) }

// findComputed finds the rows that multiply matrices, and those that compute attention.
func (o *Operators) findComputed(set *profile.Set) {
	all := set.GPU(walk.NoRank)
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

// computedFields are the columns of rows with FLOPs; shape has those that say of what.
func computedFields[T any](o *Operators, of func(*T) *Computed, shape []table.Field[T]) []table.Field[T] {
	fields := append(walk.RankFields(o.ByRank, func(row *T) *walk.Row { return &of(row).Row.Row }),
		table.NsColumn("gpu", "what it launched, and operators in it", func(row *T) int64 { return of(row).GPU }),
		table.CountColumn("calls", "how many launched work", func(row *T) int64 { return of(row).Working }))
	fields = append(fields, shape...)
	peak := table.NumberColumn("peak", "what the GPU is made for, in TFLOP/s", func(row *T) float64 { return of(row).Peak() })
	gpu := table.TextColumn("gpu name", "what the GPU is called", func(row *T) string { return of(row).GPUName })
	peak.Detail, gpu.Detail = true, true
	return append(fields,
		table.NumberColumn("gflop", "in one call, in billions of floating-point operations", func(row *T) float64 { return of(row).FLOPs / float64(of(row).Working) / 1e9 }),
		table.NumberColumn("tflops", "achieved, in 10^12 operations per second of GPU time", func(row *T) float64 { return of(row).Achieved() }),
		table.ShareColumn("of peak", "tflops as part of what the GPU is made for", func(row *T) float64 { return of(row).Achieved() / of(row).Peak() }),
		peak, gpu,
		table.TextColumn("type", "of the numbers", func(row *T) string { return of(row).Type }),
		table.TextColumn("operator", "name of the operator", func(row *T) string { return of(row).Row.Row.Name }))
}

// notePeak says what the peak of some rows is of, or why there is none.
func notePeak[T any](o *Operators, t *table.Table, rows []T, of func(*T) *Computed) {
	if len(rows) == 0 {
		return
	}
	name, unknown := of(&rows[0]).GPUName, 0
	for i := range rows {
		if math.IsNaN(of(&rows[i]).Peak()) {
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

// A peak is how many TFLOP/s a GPU is made for with dense matrices, by the size of their
// numbers.
type peak struct {
	name        string // in that of the GPU
	half, eight float64
}

// peaks are of the data sheets of the GPUs, at boost clock and without sparsity, for which
// most sheets of NVIDIA give twice as much. The first one whose name fits counts. 0 is not
// possible.
var peaks = []peak{
	{"B200", 2250, 4500},        // NVIDIA DGX B200: 36 and 72 PFLOPS for 8, with sparsity
	{"H200 NVL", 835.5, 1670.5}, // NVIDIA H200 Tensor Core GPU
	{"H200", 989.5, 1979},       // the same
	{"H100 NVL", 835.5, 1670.5}, // NVIDIA H100 Tensor Core GPU
	{"H100 PCIe", 756.5, 1513},  // the same, first edition
	{"H100", 989.5, 1979},       // the same: SXM
	{"H20", 148, 296},           // NVIDIA H20
	{"A100", 312, 0},            // NVIDIA A100 Tensor Core GPU
	{"L40S", 362, 733},          // NVIDIA L40S
	{"L4", 121, 242.5},          // NVIDIA L4
	{"MI355X", 2516.6, 5033.2},  // AMD Instinct MI355X
	{"MI325X", 1307.4, 2614.9},  // AMD Instinct MI325X
	{"MI300X", 1307.4, 2614.9},  // AMD Instinct MI300X
}

// peakOf returns the peak of a GPU for a type of numbers; NaN is unknown. Of 32-bit numbers
// it is: whether TF32 is used is not recorded.
func peakOf(gpu, typ string) float64 {
	i := slices.IndexFunc(peaks, func(p peak) bool { return hasWords(gpu, p.name) })
	if i < 0 {
		return math.NaN()
	}
	of := 0.0
	switch {
	case typ == "c10::BFloat16" || typ == "c10::Half":
		of = peaks[i].half
	case strings.HasPrefix(typ, "c10::Float8_"):
		of = peaks[i].eight
	}
	if of == 0 {
		return math.NaN()
	}
	return of
}

// hasWords reports whether a name has some words as whole ones: "NVIDIA L4" is no L40S, and
// "NVIDIA A100-SXM4-80GB" is an A100.
func hasWords(name, words string) bool {
	split := func(s string) string {
		return " " + strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), " ") + " "
	}
	return strings.Contains(split(name), split(words))
}
