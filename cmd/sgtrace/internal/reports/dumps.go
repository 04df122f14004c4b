package reports

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/allocations"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/hang"
	"github.com/sgtrace/sgtrace/analyze/routing"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// hangs returns the report on what does not end.
func hangs(in *Reading) (*document.Document, error) {
	switch {
	case in.Flight != nil:
		return hang.Find(in.Flight).Report(), nil
	case in.Inputs == nil: // to learn its columns
		return hang.Find(recorder.NewInFlight(trace.NewSymbols())).Report(), nil
	}
	return nil, errors.New("no input says what processes have in flight: PyTorch's flight recorder does (nccl_trace_rank_*), and so do logs with NCCL_DEBUG=INFO")
}

// memory returns the report on snapshots of memory.
func memory(in *Reading) (*document.Document, error) {
	switch {
	case in.Heap != nil:
		return allocations.Measure(in.Heap, in.Profiles).Report(), nil
	case in.Inputs == nil: // to learn its columns
		return allocations.Measure(recorder.NewMemory(trace.NewSymbols()), nil).Report(), nil
	}
	return nil, errors.New("no input is a snapshot of memory: PyTorch writes one with torch.cuda.memory._dump_snapshot, and SGLang with the activity MEM of /start_profile")
}

// parseExperts makes the report on what experts got.
func parseExperts(ctx *cli.Context) (Run, error) {
	size := ctx.Int("ep-size")
	if size < 0 {
		return nil, commandline.Usage("--ep-size %d: want how many GPUs share the experts", size)
	}
	return func(in *Reading) (*document.Document, error) {
		r := routing.Measure(in.Experts, routing.Options{EP: size, Series: in.Series, Profiles: in.Profiles})
		if len(r.Sources) == 0 && in.Inputs != nil {
			return nil, errors.New("no input counts tokens by expert: SGLang's recorder does (POST start_expert_distribution_record, and later dump_expert_distribution_record), and so does a log with --enable-expert-distribution-metrics")
		}
		return r.Report(), nil
	}, nil
}
