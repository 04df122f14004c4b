//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// A child is one run of the real program. If any field but dir is set, it runs in its own process.
type child struct {
	dir    string    // working directory
	env    []string  // added to the environment of the test
	limits string    // shell commands that run first: "ulimit -n 32"
	redir  string    // shell redirections: ">/dev/full"
	in     io.Reader // nil means /dev/null
	out    io.Writer // nil means ending.out
}

// An ending is the result of a child.
type ending struct {
	status   int // -1 if a signal ended it
	out, err string
	cpu      time.Duration // of its own process
}

// patience is how long a child may take before it counts as hung.
const patience = 2 * time.Minute

// command prepares the child.
func (c child) command(t testing.TB, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	script := "exec sgtrace \"$@\" " + c.redir
	if c.limits != "" {
		script = c.limits + " && " + script
	}
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Dir, cmd.Stdin, cmd.Env = c.dir, c.in, append(os.Environ(), c.env...)
	return cmd
}

// run runs the program to its end.
func (c child) run(t testing.TB, args ...string) ending {
	t.Helper()
	var out, errOut bytes.Buffer
	if c.env == nil && c.limits == "" && c.redir == "" && c.in == nil && c.out == nil {
		t.Chdir(c.dir)
		status := run(append([]string{"sgtrace"}, args...), strings.NewReader(""), &out, &errOut)
		return ending{status: status, out: out.String(), err: errOut.String()}
	}
	cmd := c.command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if c.out != nil {
		cmd.Stdout = c.out
	}
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r := ending{cmd.ProcessState.ExitCode(), out.String(), errOut.String(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if strings.Contains(r.err, "\ngoroutine ") {
		t.Errorf("%v crashed: %.2000s", args, r.err)
	}
	return r
}

// check fails the test unless the child ended with the status and stderr contains all of said.
func (r ending) check(t testing.TB, status int, said ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("status %d, want %d: %.1000s", r.status, status, r.err)
	}
	for _, s := range said {
		if !strings.Contains(r.err, s) {
			t.Errorf("stderr lacks %q: %.1000s", s, r.err)
		}
	}
}

// withData limits the memory that a child may write to; beyond, it crashes. The race detector
// exceeds any limit.
func withData(megabytes int) child {
	if withRace() || runtime.GOOS != "linux" {
		return child{}
	}
	// Each core has its own buffers, hence two. If go test links the C library, unlike builds of
	// the program, each thread reserves a stack that counts even if unused, 8 MB by default.
	return child{limits: fmt.Sprintf("ulimit -s 1024 && ulimit -d %d", megabytes<<10), env: append(asUsersRun(), "GOMAXPROCS=2")}
}

// withRace reports whether the race detector is on, which makes the program ten times slower.
func withRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// simulatedEvidence returns one input of every kind from a simulated incident, by name.
var simulatedEvidence = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "sgtrace-incident-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	config := simulator.DefaultConfig(1)
	config.Requests = 60
	if _, err := writeDemo(dir, config); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, pattern := range map[string]string{"otel.jsonl": "otel.jsonl", "rank.json.gz": "torch/*.gz", "node.sqlite": "nsys/*.sqlite"} {
		matches, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(matches) == 0 {
			return nil, fmt.Errorf("the simulator wrote no %s: %v", pattern, err)
		}
		if files[name], err = os.ReadFile(matches[0]); err != nil {
			return nil, err
		}
	}
	return files, nil
})

// An evidence is a test's own folder with the incident.
type evidence struct{ dir, otel, torch, nsys string }

func newEvidence(t testing.TB) evidence {
	t.Helper()
	files, err := simulatedEvidence()
	if err != nil {
		t.Fatal(err)
	}
	e := evidence{dir: t.TempDir(), otel: "otel.jsonl", torch: "rank.json.gz", nsys: "node.sqlite"}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(e.dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// snapshot maps everything in a folder to its mode, times, and content.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %s %x", info.ModTime(), sha256.Sum256(data))
		}
		name, err := filepath.Rel(dir, path)
		found[name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkOnly fails the test if anything in dir changed since before, except the files in may.
func checkOnly(t testing.TB, dir string, before map[string]string, may ...string) {
	t.Helper()
	after := snapshot(t, dir)
	for name, text := range after {
		if before[name] != text && !slices.Contains(may, name) {
			t.Errorf("%s is new or changed: %q, was %q", name, text, before[name])
		}
	}
	for name := range before {
		if _, still := after[name]; !still && !slices.Contains(may, name) {
			t.Errorf("%s is gone", name)
		}
	}
}

// read returns the content of a file of the folder.
func (e evidence) read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
