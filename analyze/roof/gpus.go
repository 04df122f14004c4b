package roof

import (
	"math"
	"slices"
	"strings"
)

// A GPU is what one is made for. 0 is not possible, or not known.
type GPU struct {
	Name string // words in that of the device
	// Units are its streaming multiprocessors, or compute units.
	Units int64
	// Half, Eight and Four are TFLOP/s of dense matrices of numbers of 16, 8, and 4 bits.
	Half, Eight, Four float64
	Bandwidth         float64 // of its memory, TB/s
	Source            string
}

// gpus are of the data sheets, at boost clock and without sparsity, for which most sheets of NVIDIA
// give twice as much. The first one whose name fits counts.
var gpus = []GPU{
	{"GB300", 152, 2500, 5000, 15000, 8.0, "NVIDIA GB300 NVL72: a 72nd, dense"},
	{"B300", 148, 2250, 4500, 14000, 8.0, "NVIDIA HGX B300: an eighth, dense"},
	{"B200", 148, 2250, 4500, 9000, 8.0, "NVIDIA DGX B200: 36 and 72 PFLOPS for 8, with sparsity"},
	{"H200 NVL", 132, 835.5, 1670.5, 0, 4.8, "NVIDIA H200 Tensor Core GPU"},
	{"H200", 132, 989.5, 1979, 0, 4.8, "NVIDIA H200 Tensor Core GPU"},
	{"H100 NVL", 132, 835.5, 1670.5, 0, 3.9, "NVIDIA H100 Tensor Core GPU"},
	{"H100 PCIe", 114, 756.5, 1513, 0, 2.0, "NVIDIA H100 Tensor Core GPU, first edition"},
	{"H100", 132, 989.5, 1979, 0, 3.35, "NVIDIA H100 Tensor Core GPU: SXM"},
	{"H20", 78, 148, 296, 0, 4.0, "NVIDIA H20"},
	{"A100 SXM4 40GB", 108, 312, 0, 0, 1.555, "NVIDIA A100 Tensor Core GPU"},
	{"A100 PCIE 40GB", 108, 312, 0, 0, 1.555, "NVIDIA A100 Tensor Core GPU"},
	{"A100", 108, 312, 0, 0, 2.039, "NVIDIA A100 Tensor Core GPU, 80 GB"},
	{"L40S", 142, 362, 733, 0, 0.864, "NVIDIA L40S"},
	{"L4", 58, 121, 242.5, 0, 0.3, "NVIDIA L4"},
	{"MI355X", 256, 2516.6, 5033.2, 10066, 8.0, "AMD Instinct MI355X"},
	{"MI325X", 304, 1307.4, 2614.9, 0, 6.0, "AMD Instinct MI325X"},
	{"MI300X", 304, 1307.4, 2614.9, 0, 5.3, "AMD Instinct MI300X"},
}

// GPUOf returns what a GPU is made for; ok is false if it is not known.
func GPUOf(name string) (g GPU, ok bool) {
	i := slices.IndexFunc(gpus, func(g GPU) bool { return hasWords(name, g.Name) })
	if i < 0 {
		return GPU{}, false
	}
	return gpus[i], true
}

// Peak returns the TFLOP/s for a type of numbers, as PyTorch writes it; NaN is unknown. Of 32-bit numbers
// it is: whether TF32 is used is not recorded.
func (g *GPU) Peak(typ string) float64 {
	of := 0.0
	switch {
	case typ == "c10::BFloat16" || typ == "c10::Half":
		of = g.Half
	case strings.HasPrefix(typ, "c10::Float8_"):
		of = g.Eight
	case strings.HasPrefix(typ, "c10::Float4_"):
		of = g.Four
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
