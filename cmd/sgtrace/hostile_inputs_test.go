//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// A file given twice, with different spellings or through a link, is read once. Links in a
// directory count as files.
func TestSpellingsOfOneFile(t *testing.T) {
	e := newEvidence(t)
	in := func(name string) string { return filepath.Join(e.dir, name) }
	for _, err := range []error{
		os.Mkdir(in("links"), 0o755),
		os.Symlink("../"+e.otel, in("links/latest.jsonl")),
		os.Link(in(e.otel), in("hard.jsonl")),
		os.Mkdir(in("lost"), 0o755),
		os.Symlink("nowhere", in("lost/gone.jsonl")),
		os.Mkdir(in("below"), 0o755),
		os.Mkdir(in("below/deeper"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := child{dir: e.dir}
	want := c.run(t, "report", "--by-stage", e.otel)
	want.check(t, exitOK)
	for _, args := range [][]string{{"links"}, {e.otel, "./" + e.otel}, {in(e.otel), e.otel}, {"hard.jsonl", e.otel}, {"links", e.otel}} {
		got := c.run(t, append([]string{"report", "--by-stage"}, args...)...)
		got.check(t, exitOK)
		if got.out != want.out || strings.TrimPrefix(got.err, "links/: info: 1 OTLP dump [inputs-found]\n") != "" {
			t.Errorf("%v: %s%s", args, got.err, got.out)
		}
	}
	c.run(t, "report", "lost", e.otel).check(t, exitPartial, "lost/gone.jsonl", "no such file")
	c.run(t, "report", "below").check(t, exitFailed, "below: no files in this folder or below")
}

// The demo does not overwrite files that it did not write.
func TestDemoSparesEvidence(t *testing.T) {
	e := newEvidence(t)
	before := snapshot(t, e.dir)
	child{dir: e.dir}.run(t, "demo", ".").check(t, exitFailed, ". has files that are not from a demo")
	checkOnly(t, e.dir, before)
	for range 2 {
		child{dir: e.dir}.run(t, "demo", "--requests", "20", "new").check(t, exitOK)
	}
}

// When a followed dump has unusable lines, they are reported whenever they arrive, and the status
// is 3.
func TestFollowTellsDamage(t *testing.T) {
	dump := func(seed uint64) ([]byte, *simulator.Truth) {
		config := simulator.DefaultConfig(seed)
		config.Requests = 5
		return testinput.Simulate(t, config)
	}
	first, before := dump(1)
	second, after := dump(2)
	dir := t.TempDir()
	name, printed := filepath.Join(dir, "growing.jsonl"), filepath.Join(dir, "printed")
	if err := os.WriteFile(name, first, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(printed)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var errOut strings.Builder
	cmd := child{dir: dir}.command(t, "requests", "--follow", "growing.jsonl")
	cmd.Stdout, cmd.Stderr = out, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Once a request is printed, the lines before it have been read.
	wait := func(truth *simulator.Truth) {
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			text := string(readFile(t, printed))
			if slices.ContainsFunc(truth.Requests, func(r simulator.RequestTruth) bool {
				return strings.Contains(text, r.FullID) || strings.Contains(text, r.RID)
			}) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("no request is printed: %s%s", text, errOut.String())
			}
		}
	}
	wait(before)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	damage := []byte("{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":oops}]}]}]}\n")
	if _, err := f.Write(slices.Concat(damage, second)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	wait(after)
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	ending{status: cmd.ProcessState.ExitCode(), err: errOut.String()}.check(t, exitPartial, "growing.jsonl:", "data loss")
}
