//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// A cost is what some processes took.
type cost struct {
	cpu  time.Duration
	most int64 // memory in bytes, of the process with the most
}

// measure runs the program and adds what that takes.
func (b *bench) measure(c *cost, args ...string) error {
	_, err := b.output(c, args...)
	return err
}

// output is measure, and returns what the program prints.
func (b *bench) output(c *cost, args ...string) ([]byte, error) {
	cmd := exec.Command(b.program, args...)
	cmd.Dir = b.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("sgtrace %v: %w", args, err)
	}
	c.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.most = max(c.most, int64(use.Maxrss)<<10) // Linux counts KB
	}
	return out, nil
}

// costs prints a table of what each step takes for some numbers of ranks.
func (b *bench) costs(list []string) error {
	fmt.Println("| ranks | input MB | dataset MB | extract CPU s | MB | solve CPU s | MB | report of the dataset CPU s | MB | report of the files CPU s | MB |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	return each(list, b.costsOf)
}

// each does something for each of some numbers of ranks.
func each(list []string, do func(ranks int) error) error {
	for _, text := range list {
		ranks, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := do(ranks); err != nil {
			return err
		}
	}
	return nil
}

// simulateApart is simulate in a process of its own: the kernel counts the memory of this one as that
// of the programs that it starts.
func simulateApart(dir string, ranks int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return exec.Command(program, "-simulate", "-ranks", strconv.Itoa(ranks), dir).Run()
}

// costsOf prints the row of one number of ranks. Each shard is a process, as under a scheduler.
func (b *bench) costsOf(ranks int) error {
	traces, dataset := filepath.Join(b.dir, tracesName), filepath.Join(b.dir, datasetName)
	defer os.RemoveAll(traces)
	defer os.RemoveAll(dataset)
	if err := simulateApart(traces, ranks); err != nil {
		return err
	}
	size, err := sizeOf(traces)
	if err != nil {
		return err
	}
	var extract, solve, reportOfDataset, reportOfFiles cost
	shards := max(1, ranks/perHost)
	for i := range shards {
		if err := b.measure(&extract, "extract", "-o", datasetName, "--shard", fmt.Sprintf("%d/%d", i, shards), tracesName); err != nil {
			return err
		}
	}
	if err := b.measure(&reportOfDataset, "report", datasetName); err != nil {
		return err
	}
	if err := b.measure(&solve, "dataset", "solve", datasetName); err != nil {
		return err
	}
	if err := b.measure(&reportOfFiles, "report", tracesName); err != nil {
		return err
	}
	stored, err := sizeOf(dataset)
	if err != nil {
		return err
	}
	fmt.Printf("| %d | %.1f | %.1f |", ranks, float64(size)/1e6, float64(stored)/1e6)
	for _, c := range []cost{extract, solve, reportOfDataset, reportOfFiles} {
		fmt.Printf(" %.1f | %d |", c.cpu.Seconds(), c.most/1e6)
	}
	fmt.Println()
	return nil
}
