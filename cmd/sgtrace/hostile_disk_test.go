//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A full disk, or a file size limit, is reported as such. Existing files stay, and no partial
// output remains.
func TestFullDisk(t *testing.T) {
	e := newEvidence(t)
	convert := []string{"convert", "otel2perfetto", e.otel, "-o"}
	old := filepath.Join(e.dir, "old.pftrace")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, e.dir)
	full := child{dir: e.dir, limits: "ulimit -f 64"}
	for _, name := range []string{"new.pftrace", "old.pftrace", "new.json", "new.json.gz"} {
		full.run(t, append(convert, name)...).check(t, exitFailed, "writing "+name+": file too large")
		checkOnly(t, e.dir, before)
	}
	full.run(t, "merge", e.otel, e.torch, "--clock-report", "clocks.json", "-o", "new.pftrace").
		check(t, exitFailed, "writing new.pftrace: file too large")
	checkOnly(t, e.dir, before, ".", "clocks.json") // complete before the failure

	t.Run("tmpfs", func(t *testing.T) {
		small := filepath.Join(t.TempDir(), "small")
		if err := os.Mkdir(small, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "none", small).CombinedOutput(); err != nil {
			t.Skipf("cannot mount: %v %s", err, out)
		}
		defer exec.Command("umount", small).Run()
		if err := os.WriteFile(filepath.Join(small, "old.pftrace"), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, small)
		for _, name := range []string{"new.pftrace", "old.pftrace"} {
			name = filepath.Join(small, name)
			child{dir: e.dir}.run(t, append(convert, name)...).check(t, exitFailed, "writing "+name+": no space left on device")
			checkOnly(t, small, before)
		}
	})
}

// Failing to write results to stdout is an error.
func TestFullStdout(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /dev/full")
	}
	e := newEvidence(t)
	c := child{dir: e.dir, redir: ">/dev/full"}
	for _, args := range readers(e) {
		c.run(t, args...).check(t, exitFailed, "no space left on device")
	}
	for _, args := range [][]string{{}, {"--help"}, {"--version"}, {"help"}, {"help", "merge"}, {"merge", "--help"}, {"convert"}, {"help", "metrics"}, {"help", "man"}} {
		c.run(t, args...).check(t, exitFailed, "no space left on device")
	}
}

// readers are commands that print reports on the evidence.
func readers(e evidence) [][]string {
	return [][]string{
		{"inspect", e.otel, e.torch, e.nsys},
		{"report", e.otel},
		{"report", "--by-stage", e.otel},
		{"report", "--by-rank", e.otel, "--format", "csv"},
		{"report", "--timeline", e.otel, "--format", "json"},
		{"report", "--tail", e.otel, "--format", "markdown"},
		{"report", "--kernels", e.torch},
		{"report", "--kernels", e.nsys, "--format", "csv"},
		{"requests", e.otel},
		{"requests", "--format", "json", e.otel},
	}
}

// A reader that closes the pipe early ends the program normally and quietly.
func TestClosedPipe(t *testing.T) {
	e := newEvidence(t)
	for _, args := range readers(e) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		got := child{dir: e.dir, out: w}.run(t, args...)
		w.Close()
		got.check(t, exitOK)
		if strings.Contains(got.err, "pipe") {
			t.Errorf("%v says %q", args, got.err)
		}
	}
}

// A program may be started without any of the three standard files; outputs then do not take over
// their descriptors.
func TestClosedStandardFiles(t *testing.T) {
	e := newEvidence(t)
	args := []string{"convert", "otel2perfetto", e.otel, "-o"}
	child{dir: e.dir}.run(t, append(args, "want.pftrace")...).check(t, exitOK)
	for _, redir := range []string{"<&-", ">&-", "2>&-", "<&- >&- 2>&-"} {
		child{dir: e.dir, redir: redir}.run(t, append(args, "out.pftrace")...).check(t, exitOK)
		if e.read(t, "out.pftrace") != e.read(t, "want.pftrace") {
			t.Errorf("with %s the output is another one", redir)
		}
	}
	child{dir: e.dir, redir: "<&-"}.run(t, "report", "-").check(t, exitFailed, "standard input: error: the file is empty")
}

// A signal leaves the output either as it was or complete: never partial, and with no temporary
// file.
func TestSignals(t *testing.T) {
	e := newEvidence(t)
	args := []string{"merge", e.otel, e.torch, "-o", "out.pftrace"}
	began := time.Now()
	child{dir: e.dir}.run(t, args...).check(t, exitOK)
	took := time.Since(began)
	whole := e.read(t, "out.pftrace")
	before := snapshot(t, e.dir)
	const rounds = 16
	interrupted := 0
	for i := range rounds {
		previous := []byte("old")
		if i%2 == 0 {
			os.Remove(filepath.Join(e.dir, "out.pftrace"))
			previous = nil
		} else if err := os.WriteFile(filepath.Join(e.dir, "out.pftrace"), previous, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := child{dir: e.dir}.command(t, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(took * time.Duration(i) / rounds)
		cmd.Process.Signal([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL}[i/2%4])
		cmd.Wait()
		data, err := os.ReadFile(filepath.Join(e.dir, "out.pftrace"))
		isOld := err == nil && previous != nil && bytes.Equal(data, previous) || os.IsNotExist(err) && previous == nil
		switch status := cmd.ProcessState.ExitCode(); {
		case status == exitOK && string(data) == whole:
		case (status == exitFailed || status == -1) && (isOld || string(data) == whole): // -1: killed before the handler was set, or by SIGKILL
			interrupted++
		default:
			t.Errorf("signal %d of %d: status %d, the output has %d bytes: %v", i, rounds, status, len(data), err)
		}
		checkOnly(t, e.dir, before, ".", "out.pftrace")
	}
	if interrupted == 0 {
		t.Error("no signal came in time")
	}
}

// When several runs write to one output at once, each writes it whole, and the last one wins.
func TestSameOutputAtOnce(t *testing.T) {
	e := newEvidence(t)
	args := []string{"convert", "otel2perfetto", e.otel, "-o"}
	child{dir: e.dir}.run(t, append(args, "want.pftrace")...).check(t, exitOK)
	before := snapshot(t, e.dir)
	var running []*exec.Cmd
	for range 4 {
		cmd := child{dir: e.dir}.command(t, append(args, "out.pftrace")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	checkOnly(t, e.dir, before, ".", "out.pftrace")
	if e.read(t, "out.pftrace") != e.read(t, "want.pftrace") {
		t.Error("the output is not that of one run")
	}
}
