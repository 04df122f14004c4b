package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// A Comparison runs commands with two programs.
type comparison struct {
	base, changed string // the programs
	inputs        inputs
	known         *cache
	work          string
	keep          string // keeps what differs, if not ""

	printing sync.Mutex
	out      io.Writer
}

// runAll runs the commands, some at a time, prints what differs, and returns how many do.
func (c *comparison) runAll(ctx context.Context, lines []string, jobs int) int {
	var differ atomic.Int64
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range max(1, jobs) {
		workers.Go(func() {
			for n := range numbers {
				if c.differs(ctx, n+1, lines[n]) {
					differ.Add(1)
				}
			}
		})
	}
	for n := range lines {
		if ctx.Err() != nil {
			break
		}
		numbers <- n
	}
	close(numbers)
	workers.Wait()
	return int(differ.Load())
}

// differs runs a command with both programs and says what differs, or what is wrong.
func (c *comparison) differs(ctx context.Context, n int, line string) bool {
	dir := filepath.Join(c.work, fmt.Sprintf("%04d", n))
	defer os.RemoveAll(dir)
	text, err := c.difference(ctx, line, dir)
	if err == nil && text != "" && c.keep != "" {
		err = keep(dir, filepath.Join(c.keep, filepath.Base(dir)))
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		text += fmt.Sprintf("  %v\n", err)
	case text == "":
		return false
	}
	c.printing.Lock()
	defer c.printing.Unlock()
	fmt.Fprintf(c.out, "%04d differs: %s\n%s", n, line, text)
	return true
}

// difference runs a command with both programs, below dir, and returns what differs as text.
// What the base writes is thrown away unless something differs: then it runs again.
func (c *comparison) difference(ctx context.Context, line, dir string) (string, error) {
	before, known := c.known.get(line)
	if !known {
		var err error
		if before, err = execute(ctx, c.base, line, c.inputs, filepath.Join(dir, "first")); err != nil {
			return "", err
		}
		if err := os.RemoveAll(filepath.Join(dir, "first")); err != nil {
			return "", err
		}
		c.known.put(line, before)
	}
	after, err := execute(ctx, c.changed, line, c.inputs, filepath.Join(dir, "new"))
	if err != nil || after.equal(before) {
		return "", err
	}
	again, err := execute(ctx, c.base, line, c.inputs, filepath.Join(dir, "base"))
	if err != nil {
		return "", err
	}
	text := explain(again, after, dir)
	if !again.equal(before) {
		text += "  the base itself does something else every time\n"
	}
	return text, nil
}

// keep copies what a command wrote to a folder that stays.
func keep(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	for _, side := range []string{"base", "new"} {
		dir := filepath.Join(from, side)
		for _, name := range inputNames {
			if err := os.Remove(filepath.Join(dir, filesName, name)); err != nil {
				return err
			}
		}
		if err := os.CopyFS(filepath.Join(to, side), os.DirFS(dir)); err != nil {
			return err
		}
	}
	return nil
}
