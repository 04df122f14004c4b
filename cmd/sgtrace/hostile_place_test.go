//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An impossible output is refused before anything is read, and inputs stay intact whatever name or
// link leads to them.
func TestOutputsThatCannotBe(t *testing.T) {
	e := newEvidence(t)
	in := func(name string) string { return filepath.Join(e.dir, name) }
	for _, err := range []error{
		os.Symlink(e.otel, in("link.json")),
		os.Symlink("link.json", in("link2.json")),
		os.Link(in(e.otel), in("hard.json")),
		os.Mkdir(in("dir.json"), 0o755),
		os.Symlink("loop.json", in("loop.json")),
		syscall.Mkfifo(in("fifo.json"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, e.dir)
	for _, test := range []struct {
		out    string
		status int
		said   string
	}{
		{"link.json", exitUsage, "is also an input"},
		{"link2.json", exitUsage, "is also an input"},
		{"hard.json", exitUsage, "is also an input"},
		{"./dir.json/../link.json", exitUsage, "is also an input"},
		{in("link.json"), exitUsage, "is also an input"},
		{"dir.json", exitFailed, "dir.json: not a regular file"},
		{"fifo.json", exitFailed, "fifo.json: not a regular file"},
		{"loop.json", exitFailed, "loop.json"},
		{"none/out.json", exitFailed, "there is no directory none; 'mkdir -p none' creates it"},
		{e.otel + "/out.json", exitFailed, "not a directory"},
		{strings.Repeat("x", 300) + ".json", exitFailed, "file name too long"},
		{"/dev/full", exitUsage, "must end in .pftrace"},
		{"", exitUsage, "give -o FILE"},
	} {
		child{dir: e.dir}.run(t, "merge", e.otel, "-o", test.out).check(t, test.status, test.said)
		checkOnly(t, e.dir, before)
	}
	child{dir: e.dir}.run(t, "merge", "link2.json", "-o", e.otel).check(t, exitUsage, "must end in .pftrace")
	child{dir: e.dir}.run(t, "merge", e.otel, "--clock-report", "hard.json", "-o", "out.pftrace").check(t, exitUsage, "is also an input")
	checkOnly(t, e.dir, before)
}

// Inputs may be devices, pipes, and other irregular files.
func TestInputsThatAreOdd(t *testing.T) {
	e := newEvidence(t)
	if err := os.Mkdir(filepath.Join(e.dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := child{dir: e.dir}
	c.run(t, "report", "none.jsonl").check(t, exitFailed, "none.jsonl: no such file or directory")
	c.run(t, "report", "none*.jsonl").check(t, exitFailed, "none*.jsonl: no file matches")
	c.run(t, "report", "empty").check(t, exitFailed, "empty: no files in this folder or below")
	c.run(t, "merge", "/dev/null", "-o", "out.pftrace").check(t, exitFailed, "/dev/null: error: the file is empty")

	fifo := func(from string, args ...string) ending {
		path := filepath.Join(e.dir, "fifo")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		go func() {
			if w, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				w.Write([]byte(e.read(t, from)))
				w.Close()
			}
		}()
		return c.run(t, args...)
	}
	fifo(e.torch, "merge", "fifo", "-o", "fifo.pftrace").check(t, exitOK)
	if err := os.WriteFile(filepath.Join(e.dir, "empty", "fifo"), []byte(e.read(t, e.torch)), 0o644); err != nil {
		t.Fatal(err)
	}
	child{dir: filepath.Join(e.dir, "empty")}.run(t, "merge", "fifo", "-o", "../file.pftrace").check(t, exitOK)
	if got, want := e.read(t, "fifo.pftrace"), e.read(t, "file.pftrace"); got != want {
		t.Errorf("%d bytes from a named pipe, %d others from the file", len(got), len(want))
	}
	fifo(e.torch, "merge", "fifo", "--from", "+10ms", "-o", "window.pftrace").check(t, exitFailed, "fifo: cannot be read twice")
	fifo(e.nsys, "inspect", "fifo").check(t, exitOK)
}

// A dump that grows while it is read is read up to its size at the start.
func TestGrowingInput(t *testing.T) {
	e := newEvidence(t)
	lines := strings.SplitAfter(e.read(t, e.otel), "\n")
	f, err := os.Create(filepath.Join(e.dir, "growing.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, l := range lines[:len(lines)/2] {
		io.WriteString(f, l)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for _, l := range lines[len(lines)/2:] {
			for half := range 2 { // write half a line at a time, so that partial lines are seen
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				io.WriteString(f, []string{l[:len(l)/2], l[len(l)/2:]}[half])
			}
		}
	}()
	r := child{dir: e.dir}.run(t, "convert", "otel2perfetto", "growing.jsonl", "-o", "out.pftrace")
	close(stop)
	<-stopped
	if r.status != exitOK && r.status != exitPartial {
		t.Errorf("status %d: %s", r.status, r.err)
	}
	if r.status == exitPartial && !strings.Contains(r.err, "data loss") {
		t.Errorf("status 3 without a word: %s", r.err)
	}
}

// There may be more inputs than a process may open at once.
func TestFewOpenFiles(t *testing.T) {
	e := newEvidence(t)
	if err := os.Mkdir(filepath.Join(e.dir, "dumps"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		if err := os.WriteFile(filepath.Join(e.dir, "dumps", fmt.Sprintf("%02d.jsonl", i)), []byte(otelSpan(i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := child{dir: e.dir, limits: "ulimit -n 24"}
	c.run(t, "merge", "dumps", e.torch, e.nsys, "-o", "out.pftrace").check(t, exitOK)
	c.run(t, "report", "dumps").check(t, exitOK)
}

// The program needs nothing from the environment. Without space for temporary files, arguments stay
// in memory, and the output is the same.
func TestNoHomeNoTemporarySpace(t *testing.T) {
	e := newEvidence(t)
	f, err := os.Create(filepath.Join(e.dir, "long.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	io.WriteString(z, torchBegin)
	long := bytes.Repeat([]byte("arguments "), 50_000)
	for i := range 200 { // 100 MB
		fmt.Fprintf(z, `{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%d.000,"dur":1.0,"args":{"text":"%d %s"}},`, 2*i+1, i, long)
	}
	io.WriteString(z, torchSlice(1)+"]}")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	temp := filepath.Join(e.dir, "temp")
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"merge", "long.json.gz", "-o"}
	child{dir: e.dir, env: []string{"TMPDIR=" + temp}}.run(t, append(args, "want.pftrace")...).check(t, exitOK)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	before := snapshot(t, e.dir)
	for _, env := range [][]string{
		{"TMPDIR=" + filepath.Join(e.dir, "none")},
		{"TMPDIR=/dev/null"},
		{"TMPDIR=/proc", "HOME=", "USER=", "XDG_CACHE_HOME="},
	} {
		child{dir: e.dir, env: env}.run(t, append(args, "out.pftrace")...).check(t, exitOK)
		if e.read(t, "out.pftrace") != e.read(t, "want.pftrace") {
			t.Errorf("%v: the output is another one", env)
		}
		checkOnly(t, e.dir, before, ".", "out.pftrace")
	}
	exe, err := exec.LookPath("sgtrace")
	if err != nil {
		t.Fatal(err)
	}
	bare := exec.Command(exe, "report", "--by-rank", e.otel)
	bare.Dir, bare.Env = e.dir, []string{}
	if out, err := bare.CombinedOutput(); err != nil {
		t.Errorf("without any environment: %v: %s", err, out)
	}
}

// Read-only evidence in a read-only folder gives complete reports, and files that cannot be read or
// written are named. Root bypasses permissions, so the program then runs as nobody.
func TestNoPermission(t *testing.T) {
	e := newEvidence(t)
	dir, err := os.MkdirTemp("", "sgtrace-readonly-") // t.TempDir is only accessible to its owner
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		os.Chmod(dir, 0o755)
		os.RemoveAll(dir)
	}()
	for _, name := range []string{e.otel, e.torch, e.nsys, "secret.jsonl"} {
		from, mode := name, os.FileMode(0o444)
		if name == "secret.jsonl" {
			from, mode = e.otel, 0
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(e.read(t, from)), mode); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	// A read-only file that may be replaced.
	protected := filepath.Join(dir, "open", "old.pftrace")
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "open"), 0o777),
		os.Chmod(filepath.Join(dir, "open"), 0o777), // undo umask
		os.WriteFile(protected, []byte("old"), 0o444),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	exe := filepath.Join(dir, "sgtrace") // TestMain runs as the program under this name
	if err := os.WriteFile(exe, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	sgtrace := func(args ...string) ending {
		var out, errOut bytes.Buffer
		cmd := exec.Command(exe, args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errOut
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Skipf("cannot run as nobody: %v", err)
		}
		return ending{status: cmd.ProcessState.ExitCode(), out: out.String(), err: errOut.String()}
	}
	for _, args := range readers(e) {
		sgtrace(args...).check(t, exitOK)
	}
	sgtrace("report", "secret.jsonl").check(t, exitFailed, "secret.jsonl", "permission denied")
	sgtrace("report", "secret.jsonl", e.otel).check(t, exitPartial, "secret.jsonl", "permission denied")
	sgtrace("merge", e.otel, "-o", "out.pftrace").check(t, exitFailed, "out.pftrace", "permission denied")
	sgtrace("merge", e.otel, "-o", "open/old.pftrace").check(t, exitFailed, "output open/old.pftrace: permission denied")
	if data, err := os.ReadFile(protected); err != nil || string(data) != "old" {
		t.Errorf("what is protected is now %q, %v", data, err)
	}
	sgtrace("demo", "demo").check(t, exitFailed, "permission denied")
	if after := listing(t, dir); after != before {
		t.Errorf("the folder has %s, had %s", after, before)
	}
}

// listing returns the names in a folder with their modification times.
func listing(t testing.TB, dir string) string {
	t.Helper()
	var text strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s %d %s\n", e.Name(), info.Size(), info.ModTime())
	}
	return text.String()
}
