package torch

import (
	"fmt"
	"io"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Units of time, in nanoseconds.
const (
	us = int64(1_000)
	ms = int64(1_000_000)
)

// Config selects the part of a [simulator.Run] that was recorded with PyTorch's profiler, and how. Start from
// [DefaultConfig].
type Config struct {
	// Seed determines what the run leaves open: the inside of steps.
	Seed uint64
	// From and To bound the recording, as times after the first arrival. It contains the steps that are within these bounds on
	// all ranks of a TP group.
	From, To time.Duration
	// Ragged makes the recordings of a TP group begin at different steps: TP rank t lacks the first t mod (Ragged+1) of them.
	Ragged int

	// Layers is the number of layers of the model, divided among the stages of a pipeline. Each has about eleven kernels, two
	// of them collectives if TP > 1. A step too short for all of them has fewer.
	Layers int
	// Stacks is the number of python_function events of each operator, besides those of its layer and its step; 0 is a
	// recording without stacks. An event takes about 220 bytes of JSON.
	Stacks int
	// Shapes adds the shapes of their inputs to the operators.
	Shapes bool
	// Graphs makes decode steps run inside a CUDA graph: one launch, no operators, and no metadata on collectives.
	Graphs bool

	// WithSeq adds Seq and Comms Id to collectives, as PyTorch does since 2.12. Without it, they are only identified by group,
	// type, and size.
	WithSeq bool
	// RecordHost adds host_name to the file, as PyTorch does since 2.12.
	RecordHost bool
	// EndJitter is the standard deviation of the time at which a rank leaves a collective, around the time common to all.
	EndJitter time.Duration
	// Stall makes hosts busy now and then; the zero value is none.
	Stall Stall
	// Gzip compresses files, and adds .gz to their names.
	Gzip bool
}

// DefaultConfig records the first moments of the incident of a run, in small files that have everything except graphs.
func DefaultConfig(r *simulator.Run) Config {
	onset := time.Duration(r.Onset - r.Requests[0].Arrival)
	return Config{
		Seed:       r.Config.Seed,
		From:       onset,
		To:         onset + 600*time.Millisecond,
		Layers:     16,
		Stacks:     3,
		Shapes:     true,
		WithSeq:    true,
		RecordHost: true,
		EndJitter:  600 * time.Nanosecond,
		Gzip:       true,
	}
}

// maxEndJitter keeps collectives longer than three times the jitter of their ends: the shortest takes 15 µs.
const maxEndJitter = 2 * time.Microsecond

// Check returns an error if c cannot be recorded.
func (c *Config) Check() error {
	for _, f := range []struct {
		name string
		ok   bool
		must string
	}{
		{"To", c.From <= c.To, "not be before From"},
		{"Ragged", c.Ragged >= 0, "not be negative"},
		{"Layers", c.Layers >= 1 && c.Layers <= 1000, "lie between 1 and 1000"},
		{"Stacks", c.Stacks >= 0 && c.Stacks <= 64, "lie between 0 and 64"},
		{"EndJitter", c.EndJitter >= 0 && c.EndJitter <= maxEndJitter, "lie between 0 and 2µs"},
	} {
		if !f.ok {
			return fmt.Errorf("torch: Config.%s must %s", f.name, f.must)
		}
	}
	return nil
}

// Write writes the trace that the profiler of one scheduler would have left, and returns its content. rank counts the
// schedulers of the run from 0, in the order of simulator.Truth.Processes. The trace is JSON; only [WriteDir] compresses
// it.
//
// The times are those of the run, on the clock of the scheduler's host, so that they agree with its OTLP. The inside of
// steps, which the run does not have, is made up in layout.go.
func Write(w io.Writer, r *simulator.Run, c Config, rank int) (*FileTruth, error) {
	p, err := NewProfile(r, c)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= len(p.Captures) {
		return nil, fmt.Errorf("torch: no scheduler %d, the run has %d", rank, len(p.Captures))
	}
	return p.Captures[rank].write(w)
}
