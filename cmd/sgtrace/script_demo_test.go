package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// simulating returns the command demo, which makes a folder as 'sgtrace demo' does:
// "demo --seed 2 FOLDER". Each incident is simulated once, into dir, and copied to the
// scripts that are about it.
func simulating(dir string) func(ts *testscript.TestScript, _ bool, args []string) {
	var mu sync.Mutex
	made := map[string]string{} // by flags
	return func(ts *testscript.TestScript, _ bool, args []string) {
		mu.Lock()
		defer mu.Unlock()
		flags, folder := args[:len(args)-1], args[len(args)-1]
		key := strings.Join(flags, " ")
		if made[key] == "" {
			path := filepath.Join(dir, strconv.Itoa(len(made)))
			ts.Check(ts.Exec("sgtrace", slices.Concat([]string{"demo"}, flags, []string{path})...))
			made[key] = path
		}
		ts.Check(os.CopyFS(ts.MkAbs(folder), os.DirFS(made[key])))
	}
}
