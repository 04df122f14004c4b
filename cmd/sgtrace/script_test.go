package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"

	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testexport"
)

// scriptDir contains the scripts. It is absolute, because each script runs in its own directory.
var scriptDir, _ = filepath.Abs(filepath.Join("..", "..", "golden", "script"))

func TestMain(m *testing.M) {
	runtime.MemProfileRate = 0 // as in the program, which has no profiler: each collection would update a profile
	testscript.Main(m, map[string]func(){
		"sgtrace": main,
		"peak":    peak,
	})
}

// Each case in golden/script is a text archive with commands, inputs, and expected outputs. It runs
// the real main in a separate process.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           scriptDir,
		UpdateScripts: *testset.Update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("LANG", "en_US.UTF-8")
			for _, name := range []string{"GOGC", "GOMEMLIMIT"} { // a script's environment begins empty
				e.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"demo":    simulating(t.TempDir()),
			"exits":   exits,
			"pfdump":  pfdump,
			"otlp":    writeOTLP,
			"heap":    writeHeap,
			"experts": writeExperts,
			"rocm":    writeROCm,
			"graph": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(writeGraph(ts.Getenv("WORK")))
			},
			"cutline":  cutline,
			"fold":     fold,
			"compress": compress,
			"truncate": truncate,
			"pad":      pad,
			"mkfifo":   mkfifo,
			"waitopen": waitopen,
			"end":      end,
			"nofile":   nofile,
		},
	})
}

// exits runs a command and succeeds if it exits with the given status:
// "exits 3 sgtrace report broken.jsonl".
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// pfdump prints a Perfetto file as text through an independent decoder. Perfetto's own importer
// must accept it, too, if installed.
func pfdump(ts *testscript.TestScript, _ bool, args []string) {
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	t, err := readback.Decode(data)
	ts.Check(err)
	if processor := readback.FindProcessor(); processor != "" {
		_, err := readback.ImportFile(processor, ts.MkAbs(args[0]))
		ts.Check(err)
	}
	_, err = fmt.Fprint(ts.Stdout(), t.Text())
	ts.Check(err)
}

// fold prints a file, or "stdout", with its long lines folded, for comparison.
func fold(ts *testscript.TestScript, _ bool, args []string) {
	_, err := fmt.Fprint(ts.Stdout(), testinput.Fold(ts.ReadFile(args[0])))
	ts.Check(err)
}

// compress writes a compressed copy: "compress gz IN OUT".
func compress(ts *testscript.TestScript, _ bool, args []string) {
	data, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[2]))
	ts.Check(err)
	defer f.Close()
	switch args[0] {
	case "gz":
		z := gzip.NewWriter(f)
		_, err = z.Write(data)
		ts.Check(err)
		ts.Check(z.Close())
	case "zst":
		z, err := zstd.NewWriter(f)
		ts.Check(err)
		_, err = z.Write(data)
		ts.Check(err)
		ts.Check(z.Close())
	default:
		ts.Fatalf("compress: gz or zst")
	}
}

// truncate cuts bytes off the end of a file: "truncate FILE 100".
func truncate(ts *testscript.TestScript, _ bool, args []string) {
	cut, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), info.Size()-cut))
}

// writeHeap writes a memory snapshot: "heap FILE", or "heap leak FILE".
func writeHeap(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "leak" {
		a := torch.IdleAllocator(0, 1<<20)
		for range 60 {
			a.Forward(12)
			a.Keep(3<<20, 5)
			a.Wait(4000)
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), torch.MemorySnapshot(a), 0o644))
		return
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), torch.MemorySnapshot(torch.NewAllocator(38, 0, 300, 400), torch.NewAllocator(39, 1, 100, 1000)), 0o644))
}

// writeExperts writes the expert counts of a server, and its log: "experts FOLDER".
func writeExperts(ts *testscript.TestScript, _ bool, args []string) {
	truth := torch.PlayExperts(torch.ExpertConfig{Seed: 38, Mode: torch.ExpertsPerToken, Layers: 12, Dense: 1, Experts: 16, TopK: 2, EP: 4, Passes: 5, Tokens: 30, Hot: 2, Skew: 1.5, Popular: 0.1})
	ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o777))
	for name, data := range truth.Files {
		ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), name), data, 0o644))
	}
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), "server.log"), []byte(truth.Log), 0o644))
}

// writeROCm writes a run of two ranks in all formats of ROCm's profilers: "rocm FOLDER".
func writeROCm(ts *testscript.TestScript, _ bool, args []string) {
	r, in := testexport.NewROCm(38, 2, 20), func(name string) string {
		path := filepath.Join(ts.MkAbs(args[0]), name)
		ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
		return path
	}
	for n, p := range r.Ranks {
		ts.Check(r.WriteRocpd(in(fmt.Sprintf("rocpd/%d_results.db", p.PID)), true, n))
		ts.Check(r.WriteJSON(in(fmt.Sprintf("json/%d_results.json", p.PID)), n))
		ts.Check(r.WriteCSV(in(fmt.Sprintf("csv/%d_kernel_trace.csv", p.PID)), n))
		ts.Check(r.WritePerfetto(in(fmt.Sprintf("pftrace/%d_results.pftrace", p.PID)), n))
		ts.Check(r.WriteTorch(in(fmt.Sprintf("torch/TP-%d.trace.json", n)), n, 5))
	}
	ts.Check(r.WriteRocpd(in("merged.db"), true, 0, 1))
	ts.Check(r.WriteRPD(in("trace.rpd")))
}

// pad adds zeros to the end of a file, as tape archives do: "pad FILE 100".
func pad(ts *testscript.TestScript, _ bool, args []string) {
	more, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), info.Size()+more))
}

// end sends a signal to all background commands: "end HUP".
func end(ts *testscript.TestScript, _ bool, args []string) {
	s, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "HUP": syscall.SIGHUP}[args[0]]
	if !ok || signal.Ignored(s) { // children inherit signals ignored by nohup or a script
		s = syscall.SIGTERM
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(s))
	}
}

// nofile fails if a file matches the pattern.
func nofile(ts *testscript.TestScript, _ bool, args []string) {
	if matches, _ := filepath.Glob(ts.MkAbs(args[0])); len(matches) > 0 {
		ts.Fatalf("there is %v", matches)
	}
}
