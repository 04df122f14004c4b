// Benchdata writes data for benchmarks: PyTorch traces of the ranks of one server
// on two hosts, or the Nsight Systems export of one host, which is not of a
// simulated run but has as many rows as wanted:
//
//	go run ./scripts/benchdata [-mb 100] [-ranks 8] DIR
//	go run ./scripts/benchdata -nsys-rows 12500000 [-nsys-samples 1000000] DIR
//
// Or it writes a large dump of a small one, to standard output, since the disk may be too small:
//
//	go run ./scripts/benchdata -repeat 10 DUMP | sgtrace report -
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

func main() {
	mb := flag.Int("mb", 100, "megabytes of JSON for each rank, at least")
	ranks := flag.Int("ranks", 8, "number of ranks")
	rows := flag.Int("nsys-rows", 0, "write an Nsight Systems export with so many rows of kernels and calls instead")
	samples := flag.Int("nsys-samples", 0, "with so many samples of threads")
	times := flag.Int("repeat", 0, "write a dump so many times instead, each with other requests and later")
	flag.Parse()
	var err error
	switch {
	case *times > 0:
		err = repeat(os.Stdout, flag.Arg(0), *times)
	case *rows > 0:
		err = writeExport(flag.Arg(0), *rows, *samples)
	default:
		err = write(flag.Arg(0), *mb, *ranks)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchdata:", err)
		os.Exit(1)
	}
}

func write(dir string, mb, ranks int) error {
	config := simulator.DefaultConfig(1)
	config.Mode = simulator.Unified
	config.Unified = simulator.Parallel{TP: ranks, PP: 1, DP: 1}
	config.RanksPerHost, config.HostSkew, config.HostDrift = max(1, ranks/2), 1734500*time.Nanosecond, 12
	config.Straggler = simulator.Straggler{TP: ranks - 1, Factor: 1.06}
	run, err := simulator.Play(config)
	if err != nil {
		return err
	}
	recording := torch.DefaultConfig(run)
	recording.From, recording.To, recording.Layers, recording.Stacks = 0, 0, 80, 6
	for size := 0; size < mb*1e6; {
		recording.To += 200 * time.Millisecond
		var n counter
		if _, err := torch.Write(&n, run, recording, 0); err != nil {
			return err
		}
		if int(n) == size {
			return fmt.Errorf("the whole run makes %d MB", size/1e6)
		}
		size = int(n)
	}
	_, err = torch.WriteDir(dir, run, recording)
	return err
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
