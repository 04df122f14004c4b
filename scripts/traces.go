package main

import (
	"fmt"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// writeTraces writes PyTorch traces of the ranks of one server on two hosts.
func writeTraces(dir string, mb, ranks int) error {
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
