package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/cluster"
)

// scenarios lists the scenarios of clusters, or writes the dump and the truth of some into a folder.
func scenarios(flags *flag.FlagSet) func(string) error {
	name := flags.String("name", "", "the scenario; \"all\" are all of them")
	seed := flags.Uint64("seed", 1, "the same seed gives the same arrivals, lengths, and noise")
	level := flags.Int("level", 0, "SGLANG_TRACE_LEVEL, from 1 to 3; 0 is one that the seed decides")
	calm := flags.Bool("calm", false, "leave the faults out")
	logs := flags.Bool("logs", false, "write the files of a run that nobody traced, in place of a dump")
	dir := flags.String("o", ".", "folder to write into")
	return func(string) error {
		all := slices.Concat(cluster.Scenarios, cluster.Evident)
		if *name == "" {
			listScenarios(all)
			return nil
		}
		if *name != "all" {
			all = slices.DeleteFunc(all, func(s cluster.Scenario) bool { return s.Name != *name })
		}
		if len(all) == 0 {
			return fmt.Errorf("no scenario %q", *name)
		}
		for i := range all {
			write := func() error { return writeDump(&all[i], *seed, *level, *calm, *dir) }
			if *logs {
				write = func() error {
					return golden.WriteUntraced(filepath.Join(*dir, fmt.Sprintf("%s-%d", all[i].Name, *seed)), all[i].Name, *seed)
				}
			}
			if err := write(); err != nil {
				return err
			}
		}
		return nil
	}
}

func listScenarios(all []cluster.Scenario) {
	for _, s := range all {
		fmt.Printf("%-26s %s\n", s.Name, s.Doc)
	}
	fmt.Println("\nwhich are made of these faults:")
	for _, f := range cluster.Faults() {
		fmt.Printf("  %-24s %s\n", f[0], f[1])
	}
}

// writeDump writes the dump and the truth of a run.
func writeDump(s *cluster.Scenario, seed uint64, level int, calm bool, dir string) error {
	c := s.Config(seed)
	if level > 0 {
		c.Level = level
	}
	base := filepath.Join(dir, fmt.Sprintf("%s-%d-l%d", s.Name, seed, c.Level))
	if calm {
		c, base = c.Calm(), base+"-calm"
	}
	r, truth, err := play(s, c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(base+".truth.json", truth, 0o666); err != nil {
		return err
	}
	var dump bytes.Buffer
	if err := cluster.Write(&dump, r); err != nil {
		return err
	}
	return os.WriteFile(base+".jsonl", dump.Bytes(), 0o666)
}

// play plays a scenario and returns its truth as JSON, too.
func play(s *cluster.Scenario, c cluster.Config) (r *cluster.Run, truth []byte, err error) {
	if r, err = cluster.Play(c); err != nil {
		return nil, nil, err
	}
	t, err := s.Truth(r)
	if err != nil {
		return nil, nil, err
	}
	truth, err = json.MarshalIndent(t, "", " ")
	return r, append(truth, '\n'), err
}
