package reports

import (
	"errors"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/hang"
	"github.com/sgtrace/sgtrace/flight"
	"github.com/sgtrace/sgtrace/trace"
)

// hangs is the report on what does not end.
func hangs(in *Reading) (*document.Document, error) {
	switch {
	case in.Flight != nil:
		return hang.Find(in.Flight).Report(), nil
	case in.Inputs == nil: // to learn its columns
		return hang.Find(flight.New(trace.NewSymbols())).Report(), nil
	}
	return nil, errors.New("no input says what processes have in flight: PyTorch's flight recorder does (nccl_trace_rank_*), and so do logs with NCCL_DEBUG=INFO")
}
