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

// A child is one run of the real program, in a process of its own where it has more than a folder.
type child struct {
	dir    string    // it works in
	env    []string  // beside those of the test, and after them
	limits string    // shell commands before it: "ulimit -n 32"
	redir  string    // shell redirections: ">/dev/full"
	in     io.Reader // nil is /dev/null
	out    io.Writer // nil is ending.out
}

// An ending is how a child ended.
type ending struct {
	status   int // -1 if a signal ended it
	out, err string
	cpu      time.Duration // that a process of its own took
}

// patience is how long a child may take before it counts as hanging.
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

// check fails the test unless the child ended with the status and said all of it on
// stderr.
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

// withData bounds the memory that a child may write to: beyond, it crashes. The
// race detector takes more than any bound.
func withData(megabytes int) child {
	if withRace() || runtime.GOOS != "linux" {
		return child{}
	}
	// Every core more has its own buffers. Where go test links the C library, as builds of
	// the program do not, it reserves a stack for each thread, 8 MB unless told, which counts
	// whether it is used or not.
	return child{limits: fmt.Sprintf("ulimit -s 1024 && ulimit -d %d", megabytes<<10), env: append(asUsersRun(), "GOMAXPROCS=2")}
}

// withRace reports whether the program has the race detector, with which it takes
// ten times as long.
func withRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// simulatedEvidence is one input of every kind, of a simulated incident, by name.
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

// An evidence is a folder of a test's own with the incident.
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

// snapshot describes all that is in a folder: names, modes, times and content.
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

// checkOnly fails the test if anything changed in dir since before, but for the
// files that may.
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
