package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// incidents are what the demo has not. Each is well but for one thing.
var incidents = []struct {
	name  string
	plant func(c *simulator.Config)
}{
	{"well", func(*simulator.Config) {}},
	{"slowserver", func(c *simulator.Config) {
		c.Unified = simulator.Parallel{TP: 1, PP: 1, DP: 4}
		c.Straggler = simulator.Straggler{DP: 1, Factor: 1.5}
	}},
	{"onset", func(c *simulator.Config) { c.Straggler = simulator.Straggler{TP: 1, Factor: 1.3, AtOnset: true} }},
	{"direct", func(c *simulator.Config) {
		c.Mode = simulator.PDDirect
		c.FailedTransfers, c.SlowTransfers = 0.03, 0.03
	}},
	{"hosts", func(c *simulator.Config) {
		c.Unified = simulator.Parallel{TP: 4, PP: 2, DP: 1}
		c.RanksPerHost, c.HostSkew, c.HostDrift = 4, 3*time.Millisecond, 20
	}},
}

// simulate writes each incident with what was recorded of it into a folder below dir.
func simulate(dir string) error {
	for i, incident := range incidents {
		config := simulator.DefaultConfig(uint64(i) + 1)
		config.Mode = simulator.Unified
		config.Straggler, config.Incident = simulator.Straggler{}, simulator.Incident{Onset: 0.5}
		config.SlowTransfers, config.FailedTransfers, config.Cancels, config.Impatient = 0, 0, 0, 0
		config.KVTokens, config.MaxQueued = 16*config.KVTokens, 16*config.MaxQueued
		incident.plant(&config)
		if err := writeRun(filepath.Join(dir, incident.name), config); err != nil {
			return err
		}
	}
	return nil
}

// writeRun plays an incident and writes its files. What was recorded is little, as
// in a recording that somebody took for a moment.
func writeRun(dir string, config simulator.Config) error {
	run, err := simulator.Play(config)
	if err != nil {
		return err
	}
	traces, exports := torch.DefaultConfig(run), nsys.DefaultConfig(run)
	for _, c := range []*torch.Config{&traces, &exports.Torch} {
		c.To = c.From + 150*time.Millisecond
		c.WithSeq, c.RecordHost, c.Graphs = true, true, true
	}
	if err := golden.WriteDir(dir, run, &traces, &exports); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, "truth.json"))
}
