package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

const (
	// mutantTime is when a run counts as hung.
	mutantTime = 2 * time.Minute
	// mutantBytes is how many bytes a run may allocate in total, garbage included, to read an input
	// below 1 MB.
	mutantBytes = 1 << 30
	// mutantPeak is the peak memory that a process may take to read it. Undamaged files take 40 MB.
	mutantPeak = 200 << 20
)

// TestMutants damages inputs in every known way. For any input, every command ends with a status
// that fits the outcome, names the damaged file and place, and leaves complete results or none.
// Each command meets each kind of damage; in compressed files, two commands meet each, because no
// command sees the compression.
func TestMutants(t *testing.T) {
	for _, s := range simulatedSubjects(t, 12) {
		commands := len(s.kind.commands)
		if s.packed {
			commands = 2
		}
		each := mutantCount(t, testinput.Kinds()*commands)
		t.Run(s.name, func(t *testing.T) { s.try(t, 0, each, (*trial).inProcess) })
	}
}

// TestRealMutants does the same with real files: each meets each kind of damage once, with other
// commands than the previous file.
func TestRealMutants(t *testing.T) {
	each := mutantCount(t, testinput.Kinds())
	for i, s := range realSubjects(t) {
		t.Run(s.name, func(t *testing.T) { s.try(t, i, each, (*trial).inProcess) })
	}
}

// TestMutantsOfTheProgram gives some mutants to the program in a separate process, and measures its
// memory. Decompression takes the same memory for every format.
func TestMutantsOfTheProgram(t *testing.T) {
	n := mutantCount(t, testinput.Kinds()) // enough to run every command, too
	for _, s := range simulatedSubjects(t, 12) {
		if s.packed && s.kind != kindTorch {
			continue
		}
		t.Run(s.name, func(t *testing.T) { s.try(t, 0, n, (*trial).inProgram) })
	}
}

// mutantCount returns n, the number of mutants per file, unless the environment overrides it.
func mutantCount(t *testing.T, n int) int {
	if text := os.Getenv("SGTRACE_MUTANTS"); text != "" {
		more, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return more
	}
	return n
}

// try judges n mutants, each with the next command, beginning with command number first.
func (s *subject) try(t *testing.T, first, n int, execute func(*trial, *testing.T) (status int)) {
	tally := map[int]int{}
	dir := t.TempDir()
	for seed := range uint64(n) {
		m := s.Mutate(seed)
		// After each round of the kinds of damage, the commands move on by one, so that each
		// command meets each kind after as many rounds as there are commands.
		commands, kinds := s.kind.commands, testinput.Kinds()
		c := commands[(first+int(seed)/kinds+int(seed)%kinds)%len(commands)]
		e := &trial{subject: s, mutant: m, command: c, dir: filepath.Join(dir, strconv.Itoa(int(seed)))}
		if err := os.Mkdir(e.dir, 0o777); err != nil {
			t.Fatal(err)
		}
		status := e.judge(t, execute)
		tally[status]++
		if seed%16 == 7 {
			e.checkAgain(t, execute)
		}
		if t.Failed() {
			t.Fatalf("%s, seed %d: %s; sgtrace %s", s.name, seed, m.Name, strings.Join(e.args(), " "))
		}
		os.RemoveAll(e.dir)
	}
	t.Logf("%d mutants by exit status: %v", n, tally)
}

// A trial runs one command on one mutant, in its own directory.
type trial struct {
	*subject
	mutant  testinput.Mutant
	command string
	dir     string

	out, err bytes.Buffer
}

// args returns the arguments of the command, with IN replaced by the mutant and OUT.xxx by an output.
func (e *trial) args() []string {
	args := strings.Fields(e.command)
	for i, a := range args {
		switch {
		case a == "IN":
			args[i] = e.input()
		case a == "WITH":
			args[i] = e.with
		case strings.HasPrefix(a, "OUT."):
			args[i] = e.output()
		}
	}
	return args
}

func (e *trial) input() string { return filepath.Join(e.dir, "in"+e.ext) }

// output returns the name of the output that the command writes, "" if none.
func (e *trial) output() string {
	if _, ext, ok := strings.Cut(e.command, "OUT"); ok {
		return filepath.Join(e.dir, "out"+strings.Fields(ext)[0])
	}
	return ""
}

// inProcess runs the command by calling run, as main does.
func (e *trial) inProcess(t *testing.T) (status int) {
	e.out.Reset()
	e.err.Reset()
	// A hung run ends with the stacks of all goroutines. The mutant then stays in its directory, as
	// it does after a panic.
	clock := time.AfterFunc(mutantTime, func() {
		panic(fmt.Sprintf("%s: %s: sgtrace %v hangs", e.name, e.mutant.Name, e.args()))
	})
	defer clock.Stop()
	testinput.BoundMemory(t, mutantBytes, func() {
		status = run(append([]string{"sgtrace"}, e.args()...), strings.NewReader(""), &e.out, &e.err)
	})
	return status
}

// inProgram runs the command in a process, as users do.
func (e *trial) inProgram(t *testing.T) (status int) {
	e.out.Reset()
	e.err.Reset()
	ctx, cancel := context.WithTimeout(t.Context(), mutantTime)
	defer cancel()
	peak := e.dir + ".peak"
	cmd := exec.CommandContext(ctx, "peak", append([]string{peak}, e.args()...)...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &e.out, &e.err, append(os.Environ(), asUsersRun()...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Errorf("hangs for %v", mutantTime)
	}
	if n, err := strconv.ParseInt(string(readFile(t, peak)), 10, 64); err != nil || n > mutantPeak || n == 0 && runtime.GOOS == "linux" {
		t.Errorf("takes %d MB; %v", n>>20, err)
	}
	return cmd.ProcessState.ExitCode()
}

// judge runs the command and checks its results.
func (e *trial) judge(t *testing.T, execute func(*trial, *testing.T) int) int {
	t.Helper()
	if err := os.WriteFile(e.input(), e.mutant.Data, 0o444); err != nil {
		t.Fatal(err)
	}
	status := execute(e, t)
	e.checkTalk(t, status)
	if data, err := os.ReadFile(e.input()); err != nil || !bytes.Equal(data, e.mutant.Data) {
		t.Errorf("the input is not what it was: %v", err)
	}
	want := []string{filepath.Base(e.input())}
	if name := e.output(); name != "" && (status == exitOK || status == exitPartial) {
		want = append(want, filepath.Base(name))
		data, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("status %d without an output: %v", status, err)
		}
		checkWhole(t, filepath.Ext(name), data)
	}
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if !slices.Equal(left, want) {
		t.Errorf("status %d leaves %v, want %v", status, left, want)
	}
	return status
}

// placed matches a message about damage at a table, line, row, or byte.
var placed = regexp.MustCompile(`^(\S+?)((?::[A-Za-z_0-9]+)?(?::\d+|\+\d+)?): (?:data loss|error): .+ \[([a-z0-9-]+)\](?: \(\d+ times; this is the first\))?$`)

// aboutFiles are the codes of problems that concern a file as a whole.
var aboutFiles = []string{"input-unusable", "nsys-truncated", "nsys-tables-damaged", "nsys-tables-found", "nsys-no-names"}

// checkTalk checks the status and the messages.
func (e *trial) checkTalk(t *testing.T, status int) {
	t.Helper()
	talk := strings.TrimSuffix(e.err.String(), "\n")
	worst, wrong := false, false
	for line := range strings.Lines(talk) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, ": data loss: ") || strings.Contains(line, ": error: ") {
			worst = true
			if m := placed.FindStringSubmatch(line); m == nil || m[1] != e.input() || m[2] == "" && !slices.Contains(aboutFiles, m[3]) {
				t.Errorf("a message without a place: %s", line)
			}
		}
		wrong = wrong || strings.HasPrefix(line, "sgtrace: ")
	}
	switch status {
	case exitOK:
		if worst || wrong {
			t.Errorf("status 0 with %s", talk)
		}
	case exitPartial:
		if !worst || wrong {
			t.Errorf("status 3 without a reason: %s", talk)
		}
	case exitFailed:
		if !wrong || e.out.Len() > 0 || !strings.Contains(talk, e.input()) {
			t.Errorf("status 1 with %d bytes of output and %s", e.out.Len(), talk)
		}
	default:
		t.Errorf("status %d: %s", status, talk)
	}
	if status == exitOK || status == exitPartial {
		if strings.Contains(e.command, "--format json") {
			checkWhole(t, ".json", e.out.Bytes())
		} else if e.output() == "" && e.out.Len() == 0 {
			t.Errorf("status %d, and not a word: %s", status, talk)
		}
	}
}

// checkWhole checks that an output ends where it should.
func checkWhole(t *testing.T, ext string, data []byte) {
	t.Helper()
	switch ext {
	case ".json":
		if !json.Valid(data) {
			t.Errorf("no JSON: %.100q", data)
		}
	case ".pftrace":
		if _, err := readback.Decode(data); err != nil {
			t.Error(err)
		}
		if processor := readback.FindProcessor(); processor != "" {
			readback.CheckImport(t, processor, data)
		}
	}
}

// checkAgain checks that the same input gives the same output.
func (e *trial) checkAgain(t *testing.T, execute func(*trial, *testing.T) int) {
	t.Helper()
	read := func() (text string) {
		text = e.out.String() + e.err.String()
		if name := e.output(); name != "" {
			data, _ := os.ReadFile(name)
			text += string(data)
		}
		return text
	}
	first := read()
	execute(e, t)
	if second := read(); first != second {
		t.Errorf("the same input gives\n%.2000s\nand\n%.2000s", first, second)
	}
}
