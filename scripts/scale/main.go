//go:build linux

// Command scale shows that many processes make one dataset: it simulates a run of many ranks,
// extracts it as an array job of a real Slurm, some tasks of which are killed, and compares what
// is printed of the dataset with what is printed of the files, and with what real SQL engines say.
//
//	go run ./scripts/scale [-ranks N] [-cache DIR]
//
// Slurm comes from Debian's packages and the engines from npm, into DIR. A part for which these
// cannot be had is skipped, which is said.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/scripts/scale/engines"
)

// Folders that are compared. They have names of one length, so that tables are as wide.
const (
	tracesName  = "traces-in"
	datasetName = "traces-ds"
	xargsName   = "traces-xa"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("scale: ")
	ranks := flag.Int("ranks", 64, "simulate `N` ranks, a multiple of 8")
	cache := flag.String("cache", filepath.Join(os.TempDir(), "sgtrace-scale"), "keep Slurm and the engines in `DIR`")
	flag.Parse()
	dir, err := os.MkdirTemp("", "scale-*")
	if err != nil {
		log.Fatal(err)
	}
	b := &bench{dir: dir, cache: *cache}
	if err = b.build(); err == nil {
		err = b.check(context.Background(), *ranks)
	}
	os.RemoveAll(dir)
	if err != nil {
		log.Fatal(err)
	}
}

// A bench is where programs run.
type bench struct {
	dir, cache, program string
}

// build builds the program.
func (b *bench) build() error {
	b.program = filepath.Join(b.dir, "sgtrace")
	out, err := exec.Command("go", "build", "-o", b.program, "./cmd/sgtrace").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	return nil
}

// check runs all parts that can be run.
func (b *bench) check(ctx context.Context, ranks int) error {
	simulated, err := exec.Command("go", "run", "./scripts/simulate", "ranks", "-ranks", strconv.Itoa(ranks), filepath.Join(b.dir, tracesName)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("simulating: %v: %s", err, simulated)
	}
	log.Printf("%d ranks", ranks)
	if err := b.refuseShards(); err != nil {
		return err
	}
	if err := b.underXargs(ranks); err != nil {
		return err
	}
	err = b.underSlurm(ctx, ranks)
	switch {
	case errors.Is(err, errNoSlurm):
		log.Printf("SKIPPED: %v", err)
		err = os.Rename(filepath.Join(b.dir, xargsName), filepath.Join(b.dir, datasetName))
	case err == nil:
		err = b.sameDatasets()
	}
	if err != nil {
		return err
	}
	if err := b.sameReport(); err != nil {
		return err
	}
	return b.sameTables(ctx)
}

// run runs the program on the files.
func (b *bench) run(args ...string) ([]byte, error) {
	cmd := exec.Command(b.program, args...)
	cmd.Dir = b.dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out, fmt.Errorf("sgtrace %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// refuseShards checks that shard numbers out of range are usage errors.
func (b *bench) refuseShards() error {
	for _, shard := range []string{"64/64", "-1/64", "0/0", "3", "1/x"} {
		err := exec.Command(b.program, "extract", "-o", filepath.Join(b.dir, "refused"), "--shard="+shard, b.dir).Run()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 {
			return fmt.Errorf("--shard %s: %v, want status 2", shard, err)
		}
	}
	log.Print("shard numbers out of range are refused")
	return nil
}

// underXargs extracts shards on all cores, as the recipe in docs/SCALE.md does.
func (b *bench) underXargs(n int) error {
	line := fmt.Sprintf("seq 0 %d | xargs -P %d -I{} %s extract --quiet -o %s --shard {}/%d %s", n-1, runtime.NumCPU(), b.program, xargsName, n, tracesName)
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = b.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %v\n%s", line, err, out)
	}
	log.Printf("xargs: %d shards on %d cores", n, runtime.NumCPU())
	return nil
}

// sameDatasets compares the dataset that Slurm made with that of xargs, but for what killed tasks
// have left.
func (b *bench) sameDatasets() error {
	out, err := exec.Command("diff", "-r", "-x", ".unfinished-*", filepath.Join(b.dir, xargsName), filepath.Join(b.dir, datasetName)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the datasets of xargs and of Slurm differ: %s", out)
	}
	log.Print("datasets of xargs and Slurm are byte-identical")
	return nil
}

// sameReport compares what is printed of the dataset with what is printed of the files.
func (b *bench) sameReport() error {
	for _, args := range [][]string{{"report"}, {"report", "--by-rank"}, {"report", "--format", "json"}, {"requests", "--format", "json"}} {
		want, err := b.run(append(args, tracesName)...)
		if err != nil {
			return err
		}
		got, err := b.run(append(args, datasetName)...)
		if err != nil {
			return err
		}
		if string(want) != strings.ReplaceAll(string(got), datasetName, tracesName) {
			return fmt.Errorf("sgtrace %s differs on the dataset", strings.Join(args, " "))
		}
	}
	log.Print("reports on the dataset and on the files are byte-identical")
	return nil
}

// sameTables compares views in engines with tables of the files.
func (b *bench) sameTables(ctx context.Context) error {
	for _, e := range engines.All() {
		if err := e.Install(ctx, b.cache); errors.Is(err, engines.ErrUnavailable) {
			log.Printf("SKIPPED: %v", err)
			continue
		} else if err != nil {
			return err
		}
		statements, err := b.run("sql", "--dialect", e.Dialect, filepath.Join(b.dir, datasetName))
		if err != nil {
			return err
		}
		differences, err := e.CheckTables(ctx, string(statements), func(command string) ([]byte, error) {
			return b.run(append(strings.Fields(command), tracesName)...)
		})
		if err != nil {
			return err
		}
		if len(differences) > 0 {
			return errors.New(strings.Join(differences, "\n"))
		}
		log.Printf("%s: every cell of %d views equals the reports", e.Dialect, len(engines.SameTables))
	}
	return nil
}
