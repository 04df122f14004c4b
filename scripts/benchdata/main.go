// Benchdata writes PyTorch traces of the ranks of one server on two hosts, for
// benchmarks:
//
//	go run ./scripts/benchdata [-mb 100] [-ranks 8] DIR
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sgtrace/sgtrace/golden"
)

func main() {
	mb := flag.Int("mb", 100, "megabytes of JSON for each rank, at least")
	ranks := flag.Int("ranks", 8, "number of ranks")
	flag.Parse()
	if err := write(flag.Arg(0), *mb, *ranks); err != nil {
		fmt.Fprintln(os.Stderr, "benchdata:", err)
		os.Exit(1)
	}
}

func write(dir string, mb, ranks int) error {
	config := golden.DefaultConfig(1)
	config.Mode = golden.Unified
	config.Unified = golden.Parallel{TP: ranks, PP: 1, DP: 1}
	config.RanksPerHost, config.HostSkew, config.HostDrift = max(1, ranks/2), 1734500*time.Nanosecond, 12
	run, err := golden.Simulate(config)
	if err != nil {
		return err
	}
	torch := golden.DefaultTorchConfig(run)
	torch.Layers, torch.Stacks = 32, 8
	for torch.To = torch.From + time.Second; ; torch.To += time.Second {
		size := counter(0)
		if _, err := golden.WriteTorch(&size, run, torch, 0); err != nil {
			return err
		}
		if int(size) >= mb*1e6 {
			break
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	_, err = golden.WriteTorchDir(filepath.Clean(dir), run, torch)
	return err
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)
