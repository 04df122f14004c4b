package operators

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
)

// A GPU is what a model of GPU can do. 0 is not possible, or unknown.
type GPU struct {
	Name string // words in the name of the device
	// Units are its streaming multiprocessors, or compute units.
	Units int64
	// PerClock is how many operations of dense matrices of 16-bit numbers a unit does per clock cycle.
	PerClock int64
	// Half, Eight and Four are TFLOP/s for dense matrices of numbers of 16, 8, and 4 bits.
	Half, Eight, Four float64
	// TF32 is TFLOP/s for dense matrices of 32-bit numbers that are rounded to 19 bits (XF32 of AMD),
	// and Single for those that are not, on whichever units are fastest.
	TF32, Single float64
	Bandwidth    float64 // of its memory, TB/s
	// Link is the bandwidth to other GPUs of its host, GB/s: half of what sheets give for both directions.
	Link   float64
	Source string
}

// reached is the share of the peak for 16-bit matrices that the best kernels reach, for GPUs where that is far from all: at the clock that
// power allows, as AMD measured. https://rocm.blogs.amd.com/software-tools-optimization/measuring-max-achievable-flops-part2/README.html
var reached = map[string]float64{"MI300X": 708.0 / 1307.4, "MI325X": 843.0 / 1307.4}

// reached returns the share of what bounds some work that the best kernels reach, as far as that is known, and 1 otherwise.
func (g *GPU) reached(by Bound) float64 {
	if part, ok := reached[g.Name]; ok && by == ByCompute {
		return part
	}
	return 1
}

// rated returns the clock of units, in MHz, at which a GPU reaches the peaks of its data sheet; 0 is unknown.
func (g *GPU) rated() float64 {
	if g.PerClock == 0 {
		return 0
	}
	return g.Half * 1e6 / float64(g.Units*g.PerClock)
}

// atClock returns the limits of a GPU while its units have a clock, in MHz: computing scales with it,
// and memory and links do not. If mhz is 0, they are those of the data sheet.
func (g GPU) atClock(mhz float64) GPU {
	if rated := g.rated(); mhz > 0 && rated > 0 {
		for _, peak := range []*float64{&g.Half, &g.Eight, &g.Four, &g.TF32, &g.Single} {
			*peak *= mhz / rated
		}
	}
	return g
}

// gpus are from data sheets, at boost clock and without sparsity, for which most sheets of NVIDIA give
// twice as much. The first one whose name fits counts.
var gpus = []GPU{
	{"GB300", 152, 8192, 2500, 5000, 15000, 1250, 80, 8.0, 900, "NVIDIA GB300 NVL72: a 72nd, dense"},
	{"B300", 148, 8192, 2250, 4500, 14000, 1125, 75, 8.0, 900, "NVIDIA HGX B300: an eighth, dense"},
	{"B200", 148, 8192, 2250, 4500, 9000, 1125, 75, 8.0, 900, "NVIDIA DGX B200: 36 and 72 PFLOPS for 8, with sparsity"},
	{"H200 NVL", 132, 4096, 835.5, 1670.5, 0, 417.5, 60, 4.8, 450, "NVIDIA H200 Tensor Core GPU"},
	{"H200", 132, 4096, 989.5, 1979, 0, 494.7, 66.9, 4.8, 450, "NVIDIA H200 Tensor Core GPU"},
	{"H100 NVL", 132, 4096, 835.5, 1670.5, 0, 417.5, 60, 3.9, 300, "NVIDIA H100 Tensor Core GPU"},
	{"H100 PCIe", 114, 4096, 756.5, 1513, 0, 378, 51.2, 2.0, 300, "NVIDIA H100 Tensor Core GPU, first edition"},
	{"H100", 132, 4096, 989.5, 1979, 0, 494.7, 66.9, 3.35, 450, "NVIDIA H100 Tensor Core GPU: SXM"},
	{"H20", 78, 0, 148, 296, 0, 74, 44, 4.0, 450, "NVIDIA H20"},
	{"A100 SXM4 40GB", 108, 2048, 312, 0, 0, 156, 19.5, 1.555, 300, "NVIDIA A100 Tensor Core GPU"},
	{"A100 PCIE 40GB", 108, 2048, 312, 0, 0, 156, 19.5, 1.555, 300, "NVIDIA A100 Tensor Core GPU"},
	{"A100", 108, 2048, 312, 0, 0, 156, 19.5, 2.039, 300, "NVIDIA A100 Tensor Core GPU, 80 GB"},
	{"L40S", 142, 1024, 362, 733, 0, 183, 91.6, 0.864, 32, "NVIDIA L40S"},
	{"L4", 58, 1024, 121, 242.5, 0, 60, 30.3, 0.3, 32, "NVIDIA L4"},
	{"MI355X", 256, 4096, 2516.6, 5033.2, 10066, 0, 157.3, 8.0, 537.6, "AMD Instinct MI355X"},
	{"MI325X", 304, 2048, 1307.4, 2614.9, 0, 653.7, 163.4, 6.0, 448, "AMD Instinct MI325X"},
	{"MI300X", 304, 2048, 1307.4, 2614.9, 0, 653.7, 163.4, 5.3, 448, "AMD Instinct MI300X"},
}

// multiprocessor has the limits of a multiprocessor of NVIDIA.
type multiprocessor struct {
	names           []string // of the GPUs
	threads, blocks int64
	shared          int64 // bytes
}

// multiprocessors are by compute capability, from the table in NVIDIA's CUDA C++ Programming Guide.
var multiprocessors = []multiprocessor{
	{[]string{"L40S", "L4"}, 1536, 24, 100 << 10},
	{[]string{"A100 SXM4 40GB", "A100 PCIE 40GB", "A100"}, 2048, 32, 164 << 10},
	{[]string{"H100", "H100 NVL", "H100 PCIe", "H200", "H200 NVL", "H20", "B200", "B300", "GB300"}, 2048, 32, 228 << 10},
}

const (
	registersOfUnit = 65536
	warp            = 32
	registerGroup   = 256  // registers of a warp are allocated in groups of this size
	sharedOfSystem  = 1024 // bytes that the system takes of each block, since compute capability 8.0
)

// A Limit is what limits how many blocks a multiprocessor holds.
type Limit string

const (
	ByThreads   Limit = "threads"
	ByRegisters Limit = "registers"
	ByShared    Limit = "shared memory"
	ByBlocks    Limit = "blocks"
)

// Resident returns how many blocks of a kernel one multiprocessor holds, the share of its threads that they
// use, and what limits this. ok is false for unknown GPUs, and for kernels whose registers were not recorded.
func (g *GPU) Resident(s profile.LaunchShape) (blocks int64, occupancy float64, by Limit, ok bool) {
	i := slices.IndexFunc(multiprocessors, func(m multiprocessor) bool { return slices.Contains(m.names, g.Name) })
	if i < 0 || s.Threads == 0 || s.Registers == 0 {
		return 0, 0, "", false
	}
	m := multiprocessors[i]
	warps := (int64(s.Threads) + warp - 1) / warp
	registers := (int64(s.Registers)*warp + registerGroup - 1) / registerGroup * registerGroup * warps
	blocks, by = m.threads/(warps*warp), ByThreads
	for _, x := range []struct {
		n  int64
		by Limit
	}{{registersOfUnit / registers, ByRegisters}, {m.shared / (int64(s.Shared) + sharedOfSystem), ByShared}, {m.blocks, ByBlocks}} {
		if x.n < blocks {
			blocks, by = x.n, x.by
		}
	}
	return blocks, float64(blocks*warps*warp) / float64(m.threads), by, blocks > 0
}

// GPUOf returns the limits of a GPU by its name; ok is false if they are unknown.
func GPUOf(name string) (g GPU, ok bool) {
	i := slices.IndexFunc(gpus, func(g GPU) bool { return hasWords(name, g.Name) })
	if i < 0 {
		return GPU{}, false
	}
	return gpus[i], true
}

// peak returns the TFLOP/s for a type of numbers, by PyTorch's name for it; NaN is unknown. It is
// unknown for 32-bit numbers until [Work.on] says which units a kernel uses.
func (g *GPU) peak(typ string) float64 {
	of := 0.0
	switch {
	case typ == "c10::BFloat16" || typ == "c10::Half":
		of = g.Half
	case strings.HasPrefix(typ, "c10::Float8_"):
		of = g.Eight
	case strings.HasPrefix(typ, "c10::Float4_"):
		of = g.Four
	case typ == roundedType:
		of = g.TF32
	case typ == singleType:
		of = g.Single
	}
	if of == 0 {
		return math.NaN()
	}
	return of
}

// hasWords reports whether a name contains some words as whole words: "NVIDIA L4" is not an L40S, and
// "NVIDIA A100-SXM4-80GB" is an A100.
func hasWords(name, words string) bool {
	split := func(s string) string {
		return " " + strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), " ") + " "
	}
	return strings.Contains(split(name), split(words))
}
