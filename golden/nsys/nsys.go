package nsys

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// Units of time, in nanoseconds.
const (
	us = int64(1_000)
	ms = int64(1_000_000)
)

// GraphTrace is how Nsight Systems traces CUDA graphs, its --cuda-graph-trace.
type GraphTrace string

const (
	// GraphsWhole records the run of a graph as one event, and none of its kernels.
	GraphsWhole GraphTrace = "graph"
	// GraphsByNode records the kernels, all with the correlation id of the launch.
	GraphsByNode GraphTrace = "node"
)

// Config selects the part of a [simulator.Run] that was recorded with Nsight Systems, and how it was exported. Start from
// [DefaultConfig].
type Config struct {
	// Torch lays out the events; equal ones make PyTorch traces and exports of the same events. Settings about PyTorch's files
	// are ignored.
	Torch torch.Config
	// Schema is the generation of the schema.
	Schema Schema
	// GraphTrace matters if Torch.Graphs is set.
	GraphTrace GraphTrace
	// Pieces is the number of consecutive sessions in which a host was recorded, each of which is a file. Events that span two
	// sessions are lost.
	Pieces int
	// Shift is the offset that nsys export added to all times (--ts-shift), in files that record it: from 2024 on.
	Shift time.Duration
	// Unclocked names hosts whose exports do not contain the start of their session.
	Unclocked []string

	// Payloads exports NCCL's payloads of its calls, if the schema has them: as JSON text before 2026, as binary data since.
	Payloads bool
	// OpenRanges is the number of NVTX ranges that each process opens and never closes.
	OpenRanges int
	// Orphans is the number of launches of kernels that each process loses.
	Orphans int
	// VisibleDevices lets each process see only its own GPU, which then is its device 0, as with CUDA_VISIBLE_DEVICES.
	VisibleDevices bool
	// ShortNames truncates the names of processes and threads to the 15 characters that Linux keeps, which are the same for all
	// ranks.
	ShortNames bool
	// MetricHz is the sampling rate of GPU metrics; 0 is never.
	MetricHz int
	// System adds calls of the operating system, its scheduler, and GPU memory.
	System bool
	// Driver is the version of the GPU driver; "" omits it.
	Driver string
	// Messages are the profiler's warnings, in exports from 2024 on.
	Messages []Message
	// Secret is placed wherever exports contain private data: environment variables, command lines, and the output of programs.
	Secret string
}

// DefaultConfig records the same part as [torch.DefaultConfig], with some of everything.
func DefaultConfig(r *simulator.Run) Config {
	return Config{
		Torch:      torch.DefaultConfig(r),
		Schema:     Schema2026,
		GraphTrace: GraphsByNode,
		Pieces:     1,
		Payloads:   true,
		OpenRanges: 1,
		Orphans:    3,
		MetricHz:   200,
		System:     true,
		Messages: []Message{
			{Severity: 1, Text: "Profiling has started."},
			{Severity: 2, Text: "Not all CUDA events might have been collected."},
		},
		Secret: "hf_goldenSecretDoNotPublish",
	}
}

// check returns an error if c cannot be recorded.
func (c *Config) check(r *simulator.Run) error {
	if err := c.Torch.Check(); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		ok   bool
		must string
	}{
		{"Schema", slices.Contains(Schemas, c.Schema), "be one of the generations"},
		{"GraphTrace", c.GraphTrace == GraphsWhole || c.GraphTrace == GraphsByNode, "be graph or node"},
		{"GraphTrace", c.GraphTrace != GraphsWhole || c.Schema >= Schema2022, "be node before the schema of 2022"},
		{"Pieces", c.Pieces >= 1 && c.Pieces <= 10, "lie between 1 and 10"},
		{"Shift", c.Shift == 0 || c.Schema >= Schema2024, "be 0 before the schema of 2024"},
		{"OpenRanges", c.OpenRanges >= 0, "not be negative"},
		{"Orphans", c.Orphans >= 0, "not be negative"},
		{"MetricHz", c.MetricHz >= 0 && c.MetricHz <= 200_000, "lie between 0 and 200000"},
	} {
		if !f.ok {
			return fmt.Errorf("nsys: Config.%s must %s", f.name, f.must)
		}
	}
	for _, name := range c.Unclocked {
		if !slices.Contains(hostNames(r), name) {
			return fmt.Errorf("nsys: Config.Unclocked names %q, which is not a host with GPUs", name)
		}
	}
	return nil
}

// hostNames returns the names of the hosts with schedulers, each of which can be recorded.
func hostNames(r *simulator.Run) []string {
	var names []string
	for i := range r.Hosts {
		if hasSchedulers(r, i) {
			names = append(names, r.Hosts[i].Name)
		}
	}
	return names
}

func hasSchedulers(r *simulator.Run, host int) bool {
	return slices.ContainsFunc(r.Instances, func(in simulator.Instance) bool {
		return slices.ContainsFunc(in.Schedulers, func(p int) bool { return r.Processes[p].Host == host })
	})
}

// write writes what nsys export would have made from a host's report, and returns its content: one file, or if there are
// pieces, one per piece, numbered before the extension of path. The name is that of the host.
//
// The times are those of the run, on the clock of the host. All schedulers of the host are in it. They number their calls
// alike, so that correlation ids collide.
func write(path string, r *simulator.Run, c Config, name string) ([]FileTruth, error) {
	if err := c.check(r); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(r.Hosts, func(h simulator.Host) bool { return h.Name == name })
	if at < 0 || !hasSchedulers(r, at) {
		return nil, fmt.Errorf("nsys: no host %q with schedulers, the run has %s", name, strings.Join(hostNames(r), ", "))
	}
	p, err := torch.NewProfile(r, c.Torch)
	if err != nil {
		return nil, err
	}
	return newHost(p, &c, at).write(path)
}

// WriteDir writes the exports of all hosts of a run into the folder nsys of a
// directory, named by host, and returns what is in them.
func WriteDir(dir string, r *simulator.Run, c Config) (*Truth, error) {
	dir = filepath.Join(dir, "nsys")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	truth := &Truth{Secret: c.Secret}
	for _, host := range hostNames(r) {
		files, err := write(filepath.Join(dir, host+".sqlite"), r, c, host)
		if err != nil {
			return nil, err
		}
		truth.Files = append(truth.Files, files...)
	}
	return truth, nil
}
