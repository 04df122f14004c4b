package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sgtrace/sgtrace/internal/order"
)

// measure measures the commands that people run, at three sizes of each kind of input, beside what
// bounds them: reading, decompressing, or parsing the same bytes. It prints the tables of
// docs/PERFORMANCE.md:
//
//	go run ./scripts bench [-only dumps,traces] [-largest 2] SGTRACE
//
// Inputs are simulated, some of them several gigabytes, in a temporary folder.
func measure(args []string) error {
	b, flags := bench{}, flag.NewFlagSet("bench", flag.ExitOnError)
	only := flags.String("only", "", "groups to measure: "+groupNames()+"; all but those that take long unless given")
	flags.IntVar(&b.largest, "largest", 2, "largest size to measure: 0, 1, or 2")
	flags.IntVar(&b.runs, "runs", 3, "runs of each command, of which the fastest counts; half of them for those above ten seconds")
	flags.StringVar(&b.dir, "dir", "", "folder for the inputs, which stay there; a temporary one unless given")
	flags.Parse(args)
	return b.run(flags.Arg(0), *only)
}

// A bench has what all measurements share.
type bench struct {
	program, dir  string
	largest, runs int
}

// A group is an input at several sizes, and the tables that are measured on it.
type group struct {
	name   string
	doc    string
	sizes  []size
	tables []section
	asked  bool // it is measured only if -only names it, as it takes half an hour and 30 GB
}

// A size makes an input in a folder, unless it is there, and returns its paths.
type size struct {
	name string
	make func(b *bench, dir string) error
}

// A section is a table: commands, and which sizes they run on.
type section struct {
	title    string
	smallest int // the first size, as an index
	rows     func(b *bench, dir string) ([]benchRow, error)
}

// A benchRow is a command.
type benchRow struct {
	name  string
	shell string // run by sh in the folder of the input; sgtrace is the program that is measured
}

func groupNames() string {
	names := order.Each(groups, func(g group) string { return g.name })
	return strings.Join(names, ", ")
}

func (b *bench) run(program, only string) (err error) {
	if b.program, err = filepath.Abs(program); err != nil {
		return err
	}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "sgtrace-bench"); err != nil {
			return err
		}
		defer os.RemoveAll(b.dir)
	}
	for _, g := range groups {
		if named := slices.Contains(strings.Split(only, ","), g.name); !named && (only != "" || g.asked) {
			continue
		}
		if err := b.measureGroup(&g); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}

// measureGroup makes the inputs of a group and prints its tables.
func (b *bench) measureGroup(g *group) error {
	fmt.Printf("## %s\n\n", g.doc)
	sizes := g.sizes[:min(b.largest+1, len(g.sizes))]
	var dirs []string
	for _, s := range sizes {
		dir := filepath.Join(b.dir, g.name+"-"+strings.ReplaceAll(s.name, " ", ""))
		if _, err := os.Stat(dir); err != nil {
			log.Printf("making %s", dir)
			if err := s.make(b, dir); err != nil {
				return err
			}
		}
		dirs = append(dirs, dir)
	}
	for _, t := range g.tables {
		if t.smallest < len(sizes) {
			if err := b.measureTable(&t, sizes[t.smallest:], dirs[t.smallest:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureTable prints a Markdown table: a command per benchRow, and a column for each size.
func (b *bench) measureTable(t *section, sizes []size, dirs []string) error {
	fmt.Printf("%s\n\n| command |", t.title)
	for _, s := range sizes {
		fmt.Printf(" %s: wall, CPU, memory |", s.name)
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat("---|", len(sizes)))
	rows := make([][]benchRow, len(sizes))
	for i, dir := range dirs {
		var err error
		if rows[i], err = t.rows(b, dir); err != nil {
			return err
		}
	}
	for r := range rows[0] {
		fmt.Printf("| `%s` |", rows[0][r].name)
		for i, dir := range dirs {
			cost, err := b.best(dir, rows[i][r].shell)
			if err != nil {
				return fmt.Errorf("%s: %w", rows[i][r].name, err)
			}
			fmt.Printf(" %s |", cost)
		}
		fmt.Println()
	}
	fmt.Println()
	return nil
}

// A report is what bench needs of the program's JSON.
type report struct {
	Tables []struct {
		Rows []struct {
			From int64  `json:"from_unix_ns"`
			To   int64  `json:"to_unix_ns"`
			RID  string `json:"rid"`
		} `json:"rows"`
	} `json:"tables"`
}

// ask returns the first benchRow of the table that a command prints.
func (b *bench) ask(dir string, args ...string) (r report, err error) {
	cmd := exec.Command(b.program, append(args, "--quiet", "--format", "json")...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, err
	}
	if len(r.Tables) == 0 || len(r.Tables[0].Rows) == 0 {
		return r, fmt.Errorf("%v printed no rows", args)
	}
	return r, nil
}

// window returns flags for a twelfth of what an input recorded, from its middle on.
func (b *bench) window(dir, input string) (string, error) {
	r, err := b.ask(dir, "report", "--table", "summary.load", input)
	if err != nil {
		return "", err
	}
	from, to := time.Unix(0, r.Tables[0].Rows[0].From), time.Unix(0, r.Tables[0].Rows[0].To)
	middle := from.Add(to.Sub(from) / 2)
	return fmt.Sprintf(" --from %s --to %s", middle.UTC().Format(time.RFC3339Nano), middle.Add(to.Sub(from)/12).UTC().Format(time.RFC3339Nano)), nil
}

// slowest returns the ID of the slowest request of a dump, of those that flags leave.
func (b *bench) slowest(dir, input string, flags ...string) (string, error) {
	r, err := b.ask(dir, append([]string{"requests", "--sort", "-e2e", "--limit", "1", input}, flags...)...)
	if err != nil {
		return "", err
	}
	return r.Tables[0].Rows[0].RID, nil
}

// A cost is what a run of a command took.
type cost struct {
	wall, cpu time.Duration
	peak      int64 // bytes, of the largest process
}

func (c cost) String() string {
	return fmt.Sprintf("%s, %s, %d MB", seconds(c.wall), seconds(c.cpu), c.peak/1e6)
}

// seconds prints two digits of a duration, at least.
func seconds(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s < 1:
		return fmt.Sprintf("%.2f s", s)
	case s < 100:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}

// best runs a command several times and returns the cost of the fastest run. One that takes more
// than ten seconds runs half as often.
func (b *bench) best(dir, shell string) (best cost, err error) {
	for i := 0; i < b.runs; i++ {
		c, err := b.once(dir, shell)
		if err != nil {
			return best, err
		}
		if i == 0 || c.wall < best.wall {
			best = c
		}
		if c.wall > 10*time.Second {
			i++
		}
	}
	return best, nil
}

// once runs a command. Status 3 is fine: windows cut requests off.
func (b *bench) once(dir, shell string) (cost, error) {
	cmd := exec.Command("sh", "-c", shell)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SGTRACE="+b.program)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	exit := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
		return cost{}, fmt.Errorf("%s: %v\n%s", shell, err, out)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return cost{wall, cpu, used.Maxrss * 1024}, nil
}
