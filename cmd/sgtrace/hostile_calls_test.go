//go:build unix

package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The program's system calls open no network connection, start no program, open no file that an
// input names, and write nowhere but to its outputs.
func TestSystemCalls(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace")
	}
	exe, err := exec.LookPath("sgtrace")
	if err != nil {
		t.Fatal(err)
	}
	e := newEvidence(t)
	bait := filepath.Join(t.TempDir(), "bait.txt")
	if err := os.WriteFile(bait, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	named := strings.NewReplacer(`"v"`, strconv.Quote(bait), "stage1", "file://"+bait, `"k"`, `"code.filepath"`).Replace(otelSpan(1))
	slice := strings.NewReplacer("gemm1", bait, `"stream":7`, `"Trace file": `+strconv.Quote(bait)+`,"include": "$include `+bait+`"`).Replace(torchSlice(1))
	for name, text := range map[string]string{"named.jsonl": named, "named.json": torchBegin + slice + "]}"} {
		if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, temp := t.TempDir(), t.TempDir()
	commands := append(readers(e),
		[]string{"merge", e.otel, e.torch, e.nsys, "named.jsonl", "named.json", "-o", filepath.Join(out, "out.pftrace")},
		[]string{"report", "named.jsonl"},
		[]string{"report", "--kernels", "named.json"})
	before := snapshot(t, e.dir)
	for _, args := range commands {
		log := filepath.Join(t.TempDir(), "log")
		cmd := exec.Command(strace, append([]string{"-f", "-qq", "-o", log, "-e", "trace=%network,%file,%process", exe}, args...)...)
		cmd.Dir, cmd.Env = e.dir, append(os.Environ(), "TMPDIR="+temp)
		if text, err := cmd.CombinedOutput(); err != nil {
			if cmd.ProcessState == nil || strings.Contains(string(text), "ptrace") {
				t.Skipf("strace cannot trace here: %v %s", err, text)
			}
			if cmd.ProcessState.ExitCode() != exitPartial {
				t.Errorf("%v: %v %s", args, err, text)
			}
		}
		calls, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(calls), e.dir) && !strings.Contains(string(calls), args[len(args)-1]) {
			t.Fatalf("%v: strace saw no input: %.500s", args, calls)
		}
		checkCalls(t, fmt.Sprint(args), string(calls), bait, out, temp)
	}
	checkOnly(t, e.dir, before)
}

var (
	opened  = regexp.MustCompile(`\bopen(?:at2?)?\((?:AT_FDCWD, )?"([^"]*)", ([A-Z_|]+)`)
	changes = regexp.MustCompile(`\b(?:mkdir|rmdir|unlink|rename|link|symlink|chmod|chown|truncate|utime|mknod|setxattr)\w*\(([^)]*)`)
)

// checkCalls checks the lines that strace printed.
func checkCalls(t *testing.T, what, calls, bait string, writable ...string) {
	t.Helper()
	may := func(text string) bool {
		for _, dir := range writable {
			if strings.Contains(text, dir) {
				return true
			}
		}
		return false
	}
	executed := 0
	for line := range strings.Lines(calls) {
		switch {
		case strings.Contains(line, "execve("):
			executed++
		case strings.Contains(line, "socket(") || strings.Contains(line, "connect("):
			t.Errorf("%s uses a network: %s", what, line)
		case strings.Contains(line, bait):
			t.Errorf("%s follows a path of its input: %s", what, line)
		}
		if m := opened.FindStringSubmatch(line); m != nil && !strings.Contains(m[2], "O_RDONLY") && !may(m[1]) && m[1] != "/dev/null" {
			t.Errorf("%s opens %s to write: %s", what, m[1], line)
		}
		if m := changes.FindStringSubmatch(line); m != nil && !may(m[1]) {
			t.Errorf("%s changes something: %s", what, line)
		}
	}
	if executed != 1 {
		t.Errorf("%s executes %d programs", what, executed)
	}
}

// Packages that could reach a network or run a program are imported only where the list allows.
func TestImports(t *testing.T) {
	allowed := map[string]string{
		"cmd/sgtrace/internal/live net":        "sgtrace open hands one file to the viewer, on the loopback address",
		"cmd/sgtrace/internal/live net/http":   "",
		"cmd/sgtrace/internal/live net/url":    "",
		"cmd/sgtrace/internal/live os/exec":    "sgtrace open starts the browser of whoever sits in front of the machine",
		"testkit/readback os/exec":             "for tests: Perfetto's own importer, a browser, and SQL engines",
		"nsysexport os/exec":                   "nsys export, of a report that you name",
		"cmd/sgtrace/internal/screen os/exec":  "the pager of whoever reads on a terminal",
		"internal/tablefile net/url":           "the address of a file, as SQLite wants it",
		"nsysexport/internal/nsystest net/url": "the same, for tests",
	}
	unused := maps.Clone(allowed)
	dangerous := regexp.MustCompile(`^(net|net/.*|os/exec|plugin|os/user|log/syslog|C|.*/(dns|grpc|websocket)\b.*)$`)
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "scripts"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			by := filepath.ToSlash(dir) + " " + name
			if _, ok := allowed[by]; dangerous.MatchString(name) && !ok {
				t.Errorf("%s imports %s", path, name)
			}
			delete(unused, by)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("%d files read: %v", files, err)
	}
	for by := range unused {
		t.Errorf("the list allows an import that nothing needs any more: %s", by)
	}
}

// An export is opened as immutable: no journal appears beside it, and an existing one stays.
func TestSQLiteIsOnlyRead(t *testing.T) {
	e := newEvidence(t)
	for _, name := range []string{"-wal", "-shm"} { // left by a program that was killed
		if err := os.WriteFile(filepath.Join(e.dir, e.nsys+name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, e.dir)
	c := child{dir: e.dir}
	c.run(t, "inspect", e.nsys).check(t, exitOK)
	c.run(t, "report", "--kernels", e.nsys).check(t, exitOK)
	c.run(t, "convert", "nsys2perfetto", e.nsys, "-o", "out.pftrace").check(t, exitOK)
	checkOnly(t, e.dir, before, ".", "out.pftrace")
}
