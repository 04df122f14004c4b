package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// If every host in a rack has a slow rank, the summary and the timeline say so.
func TestRacks(t *testing.T) {
	dir := t.TempDir()
	c := simulator.DefaultConfig(3)
	c.Mode, c.Unified, c.RanksPerHost = simulator.Unified, simulator.Parallel{TP: 2, PP: 1, DP: 6}, 2
	c.Incident, c.Requests, c.Rate = simulator.Incident{Onset: 0.5}, 400, 24
	c.SlowTransfers, c.FailedTransfers = 0, 0
	c.Straggler = simulator.Straggler{DP: 2, Replicas: 2, Factor: 1.4, AtOnset: true}
	run, err := simulator.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := golden.WriteDir(dir, run, nil, nil); err != nil {
		t.Fatal(err)
	}
	hosts := "host,rack\n"
	for i, host := range run.Hosts {
		hosts += fmt.Sprintf("%s,r%d\n", host.ID[:8], i/2)
	}
	if err := os.WriteFile(filepath.Join(dir, "hosts.csv"), []byte(hosts), 0o666); err != nil {
		t.Fatal(err)
	}
	summary := mustRun(t, dir, "report --all-findings --hosts hosts.csv otel.jsonl").out
	if n := strings.Count(summary, "\n   - all 2 hosts of rack r1 have a rank that is late\n"); n != 2 {
		t.Errorf("%d findings tell of the rack:\n%s", n, summary)
	}
	timeline := mustRun(t, dir, "report --timeline --hosts hosts.csv otel.jsonl").out
	if !strings.Contains(timeline, "\ndecode_loop lateness changed on all 2 hosts of rack r1 at ") || strings.Contains(timeline, "rack r0") {
		t.Errorf("the timeline says\n%.2000s", timeline)
	}
}
