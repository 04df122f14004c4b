package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// writeDemo writes the files of 'sgtrace demo', for a model with fewer layers, which takes half as
// long to read.
func writeDemo(dir string, config simulator.Config) (*simulator.Run, error) {
	run, err := simulator.Play(config)
	if err != nil {
		return nil, err
	}
	traces, exports := torch.DefaultConfig(run), nsys.DefaultConfig(run)
	traces.Layers, exports.Torch.Layers = 4, 4
	return run, golden.WriteDir(dir, run, &traces, &exports)
}

// demoOf writes a demo with the given number of requests.
func demoOf(t testing.TB, dir string, seed uint64, requests int) {
	t.Helper()
	config := simulator.DefaultConfig(seed)
	config.Requests = requests
	if _, err := writeDemo(dir, config); err != nil {
		t.Fatal(err)
	}
}

// simulating returns the script command demo, which makes a folder like 'sgtrace demo': "demo
// --seed 2 --requests 40 FOLDER". Each incident is simulated once, into dir, and copied to the
// scripts that use it.
func simulating(dir string) func(ts *testscript.TestScript, _ bool, args []string) {
	var mu sync.Mutex
	made := map[string]string{} // by flags
	return func(ts *testscript.TestScript, _ bool, args []string) {
		mu.Lock()
		defer mu.Unlock()
		flags, folder := args[:len(args)-1], args[len(args)-1]
		key := strings.Join(flags, " ")
		if made[key] == "" {
			config := simulator.DefaultConfig(1)
			for ; len(flags) > 1; flags = flags[2:] {
				n, err := strconv.Atoi(flags[1])
				ts.Check(err)
				switch flags[0] {
				case "--seed":
					config.Seed = uint64(n)
				case "--requests":
					config.Requests = n
				default:
					ts.Fatalf("demo: no flag %s", flags[0])
				}
			}
			path := filepath.Join(dir, strconv.Itoa(len(made)))
			_, err := writeDemo(path, config)
			ts.Check(err)
			made[key] = path
		}
		ts.Check(os.CopyFS(ts.MkAbs(folder), os.DirFS(made[key])))
	}
}
