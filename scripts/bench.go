package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
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
