// Command compare shows that a change of the source changes nothing that sgtrace
// prints or writes. It builds sgtrace of a base commit and of the current tree, runs
// every line of commands.txt with both, and compares the exit status, both outputs and
// all files that were written, byte for byte.
//
// usage: go run ./scripts/compare [-quick] [-base COMMIT] [-run REGEXP] [-j N] [-keep DIR]
//
// It needs git, and a shell as sh. What the base does is kept in a cache, so that
// only the new program runs the next time. Without the shared data ($SGTRACE_SHARED, or
// ../shared) only the commands on simulated and made up inputs are run.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// firstBase is the commit that is compared with unless told otherwise: the last one
// before the refactoring that this was written for.
const firstBase = "f0eeb1e207fe30ac05a3c818c242edde205a6023"

// Options are the flags.
type options struct {
	base       string
	baseBinary string
	run        *regexp.Regexp
	quick      bool
	list       bool
	jobs       int
	keep       string
	cache      string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("compare: ")
	opt, err := parseFlags()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	differ, err := compare(ctx, opt)
	if err != nil {
		log.Fatal(err)
	}
	if differ > 0 {
		os.Exit(1)
	}
}

func parseFlags() (options, error) {
	var opt options
	flag.StringVar(&opt.base, "base", firstBase, "compare with this `COMMIT`")
	flag.StringVar(&opt.baseBinary, "base-binary", "", "compare with the program at this `PATH` instead of building one")
	run := flag.String("run", "", "run only commands that match this `REGEXP`")
	flag.BoolVar(&opt.quick, "quick", false, "run only the commands that are marked as quick")
	flag.BoolVar(&opt.list, "list", false, "print the commands, and run none")
	flag.IntVar(&opt.jobs, "j", 2, "run `N` commands at a time")
	flag.StringVar(&opt.keep, "keep", "", "keep what commands that differ have written in this `DIR`, and all inputs in its inputs/, which is replaced")
	flag.StringVar(&opt.cache, "cache", "", "keep what the base does in this `DIR` (default: in the user's cache directory)")
	flag.Parse()
	if flag.NArg() > 0 {
		return opt, fmt.Errorf("unexpected %q", flag.Arg(0))
	}
	var err error
	if opt.keep != "" {
		if opt.keep, err = filepath.Abs(opt.keep); err != nil {
			return opt, err
		}
	}
	if opt.run, err = regexp.Compile(*run); err != nil {
		return opt, err
	}
	if opt.cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return opt, err
		}
		opt.cache = filepath.Join(user, "sgtrace-compare")
	}
	return opt, nil
}

// compare runs all commands and returns how many differ.
func compare(ctx context.Context, opt options) (differ int, err error) {
	began := time.Now()
	work, err := os.MkdirTemp("", "sgtrace-compare-*")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	base, err := baseProgram(ctx, opt, work)
	if err != nil {
		return 0, err
	}
	inputs, err := prepare(ctx, base, inputsPath(opt, work))
	if err != nil {
		return 0, err
	}
	if !inputs.shared {
		fmt.Printf("note: no shared data ($SGTRACE_SHARED, ../shared): commands on it are left out\n")
	}
	lines, err := commands(inputs, opt)
	if err != nil {
		return 0, err
	}
	if opt.list {
		for _, line := range lines {
			fmt.Println(line)
		}
		return 0, nil
	}
	changed := filepath.Join(work, "new", program)
	if err := build(ctx, ".", changed); err != nil {
		return 0, err
	}
	known, err := openCache(opt.cache, base, inputs)
	if err != nil {
		return 0, err
	}
	c := &comparison{base: base, changed: changed, inputs: inputs, known: known, work: work, keep: opt.keep, out: os.Stdout}
	differ = c.runAll(ctx, lines, opt.jobs)
	if err := known.save(); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	fmt.Printf("%d commands, %d differ, %.0f s\n", len(lines), differ, time.Since(began).Seconds())
	return differ, nil
}

// inputsPath returns where the inputs are to be.
func inputsPath(opt options, work string) string {
	if opt.keep != "" {
		return filepath.Join(opt.keep, "inputs")
	}
	return filepath.Join(work, "inputs")
}
