package metric

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// What has many durations under each of its names.
var (
	Stage = &Metric{Name: "stage", Unit: table.Duration, Better: Less, Numbers: Sums, Named: MustName,
		Doc: "a stage of requests; total is per request and rank"}
	// DecodeStep compares like with like.
	DecodeStep = &Metric{Name: "decode_step", Unit: table.Duration, Better: Less, Numbers: []string{"mean"},
		Doc: "decode steps, compared with steps of the same batch size"}
	Step = &Metric{Name: "step", Unit: table.Duration, Better: Less, Numbers: Sums, Named: MayName,
		Doc: "annotated steps, or those of a kind; of all batch sizes together"}
	Kernel = &Metric{Name: "kernel", Unit: table.Duration, Better: Less, Numbers: Sums, Named: MayName,
		Doc: "kernels, or those of a name; total is per step"}
	Copy = &Metric{Name: "copy", Unit: table.Duration, Better: Less, Numbers: Sums, Named: MayName,
		Doc: "copies and fills of memory, or those of a name; total is per step"}
	GPU = &Metric{Name: "gpu", Unit: table.Duration, Numbers: Total, Named: MustName,
		Doc: "where the time of devices went: busy, idle, compute, ...; per step"}
)

// Groups are in the order of help.
var Groups = []*Metric{Stage, DecodeStep, Step, Kernel, Copy, GPU}

// Speeds are how fast a rank computes tokens, of the time that its devices take for steps, by kind of
// step. Of profile.StepOther, only mixtures tell their tokens.
var Speeds = [...]*Metric{
	profile.StepOther:   speed("mixed"),
	profile.StepPrefill: speed("prefill"),
	profile.StepDecode:  speed("decode"),
}

func speed(kind string) *Metric {
	return &Metric{Name: "tokens." + kind, Title: "tokens per second in " + kind + " steps", Unit: table.Number, Better: More,
		Doc: "tokens per second of a rank in " + kind + " steps, of the time that devices take for them"}
}
