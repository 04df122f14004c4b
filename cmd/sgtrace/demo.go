package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

func (c *command) demoCommand() *cli.Command {
	cmd := &cli.Command{
		Name:      "demo",
		Usage:     "simulate a small incident to try the tool on",
		ArgsUsage: "DIR",
		Description: `Simulates a deployment with prefill/decode disaggregation behind a gateway, with
a slow decode rank, hosts with wrong clocks, a burst that overloads one DP rank,
slow KV transfers, aborts, and retractions. truth.json says what was planted.
With --untraced, it simulates servers that nobody traced, which leave only logs,
metrics, and records of requests.

Examples:
  sgtrace demo demo
  sgtrace demo --seed 7 demo7
  sgtrace demo --requests 5000 demo-big
  sgtrace demo --untraced throttled demo-logs`,
		Flags: []cli.Flag{
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "the same `SEED` gives the same files"},
			&cli.IntFlag{Name: "requests", Usage: "number of `REQUESTS`", Value: simulator.DefaultConfig(0).Requests},
			&cli.StringFlag{Name: untracedFlag, Usage: "write logs, metrics, and records of `INCIDENT`, and no traces: " + strings.Join(golden.Untraced(), ", ")},
		},
		Action: func(ctx *cli.Context) error {
			if ctx.NArg() != 1 {
				return commandline.Usage("demo needs one directory to write to, such as 'sgtrace demo demo'; there are %d", ctx.NArg())
			}
			if ctx.IsSet(untracedFlag) {
				return c.demoUntraced(ctx)
			}
			return c.demoTraced(ctx)
		},
	}
	c.giveScreen(cmd)
	return cmd
}

// demoTraced simulates an incident with traces of requests, and of all GPUs.
func (c *command) demoTraced(ctx *cli.Context) error {
	config := simulator.DefaultConfig(ctx.Uint64("seed"))
	if config.Requests = ctx.Int("requests"); config.Requests < 1 {
		return commandline.Usage("--requests %d: want 1 or more", config.Requests)
	}
	c.screen.Doing("simulating requests")
	run, err := simulator.Play(config)
	if err != nil {
		return commandline.AsUsage(err)
	}
	dir := ctx.Args().First()
	if err := freeForDemo(dir); err != nil {
		return err
	}
	traces, exports := torch.DefaultConfig(run), nsys.DefaultConfig(run)
	c.screen.Doing("writing " + dir)
	if err := golden.WriteDir(dir, run, &traces, &exports); err != nil {
		return err
	}
	otel := filepath.Join(dir, "otel.jsonl")
	fmt.Fprintf(c.screen.Notices, `%s: %s; %s: PyTorch traces of all ranks;
%s: Nsight Systems exports of all hosts; %s: what was planted
try: sgtrace report %[7]s
     sgtrace requests --sort -e2e --limit 10 %[1]s
     sgtrace report --kernels %[4]s
     sgtrace merge --torch %[3]s --nsys %[4]s --otel %[1]s -o %[6]s
`, otel, count(config.Requests, "request"), filepath.Join(dir, "torch"), filepath.Join(dir, "nsys"), filepath.Join(dir, "truth.json"),
		filepath.Join(dir, "merged.pftrace"), dir)
	return nil
}

const untracedFlag = "untraced"

// demoUntraced simulates an incident of servers that nobody traced.
func (c *command) demoUntraced(ctx *cli.Context) error {
	name, dir := ctx.String(untracedFlag), ctx.Args().First()
	if ctx.IsSet("requests") {
		return commandline.Usage("--requests does not go with --untraced: such an incident lasts for minutes, whatever comes in")
	}
	if !slices.Contains(golden.Untraced(), name) {
		return commandline.Usage("--untraced %s: want one of %s", name, strings.Join(golden.Untraced(), ", "))
	}
	if err := freeForDemo(dir); err != nil {
		return err
	}
	c.screen.Doing("simulating servers")
	if err := golden.WriteUntraced(dir, name, ctx.Uint64("seed")); err != nil {
		return err
	}
	fmt.Fprintf(c.screen.Notices, `%s: logs of servers, metrics, and records of requests, as far as servers write some; %s: what was planted
try: sgtrace report %[1]s
     sgtrace report --timeline %[1]s
     sgtrace merge %[1]s -o %[3]s
`, dir, filepath.Join(dir, "truth.json"), filepath.Join(dir, "merged.pftrace"))
	return nil
}

// freeForDemo refuses a directory whose files are not from a demo: evidence might have the names of files
// that would be written.
func freeForDemo(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "truth.json" }) {
		return fmt.Errorf("%s has files that are not from a demo; give a new or empty directory, or one with an earlier demo", dir)
	}
	return nil
}
