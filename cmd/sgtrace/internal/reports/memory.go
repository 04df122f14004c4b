package reports

import (
	"errors"

	"github.com/sgtrace/sgtrace/analyze/allocations"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/heap"
	"github.com/sgtrace/sgtrace/trace"
)

// memory is the report on snapshots of memory.
func memory(in *Reading) (*document.Document, error) {
	switch {
	case in.Heap != nil:
		return allocations.Measure(in.Heap, in.Profiles).Report(), nil
	case in.Inputs == nil: // to learn its columns
		return allocations.Measure(heap.New(trace.NewSymbols()), nil).Report(), nil
	}
	return nil, errors.New("no input is a snapshot of memory: PyTorch writes one with torch.cuda.memory._dump_snapshot, and SGLang with the activity MEM of /start_profile")
}
