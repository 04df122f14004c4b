package main

import (
	"strings"
	"testing"
)

// glooRun has steps of about 3 ms, with a rank whose host is late by 4 ms.
func glooRun() glooJob {
	return glooJob{Seed: 1, Ranks: 4, Steps: 60, Op: "gloo:all_reduce", Late: 2, LateNs: 4_000_000, OnHost: true}
}

// glooSummary returns the findings of the summary of a run on one line, without the text before them.
func glooSummary(t *testing.T, g glooJob) string {
	t.Helper()
	return glooSummaryIn(t, g.write(t))
}

func glooSummaryIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	r := sgtrace(t, dir, append([]string{"report", "--evidence"}, append(args, ".")...)...)
	if r.status != exitOK {
		t.Fatalf("status %d: %s", r.status, r.err)
	}
	if _, findings, ok := strings.Cut(r.out, " finding"); ok {
		r.out = findings
	}
	return strings.Join(strings.Fields(r.out), " ")
}

// If hosts wait in gloo for a rank, the summary names it, since when, and why it is late.
func TestLateInGloo(t *testing.T) {
	device, since, even := glooRun(), glooRun(), glooRun()
	device.OnHost = false
	since.Since = 30
	even.Late = -1
	tensors := device
	tensors.OnDevice = true // a gloo thread waits for the device
	for name, c := range map[string]struct {
		run       glooJob
		want, not []string
	}{
		"host": {glooRun(), []string{
			"rank 2 arrives last in 59 of 59 gloo collectives of 4 ranks, ",
			"host-bound: its GPU idles longer because the host launches work later (certain;",
			"% of that for rank 2", "mostly while the host is in gloo collectives",
			"while its GPU waited for launches then, its host was in decode bs=5-8 step for ",
		}, []string{"because the host launches kernels too late", "no straggler"}},
		"device": {device, []string{
			"rank 2 arrives last in 59 of 59 gloo collectives of 4 ranks, ", "compute-bound: it runs `large_gemm`, which the other ranks do not",
		}, []string{"its host was", "no straggler"}},
		"tensors of the device": {tensors, []string{
			"rank 2 arrives last in 59 of 59 gloo collectives of 4 ranks, ", "compute-bound: it runs `large_gemm`, which the other ranks do not",
		}, []string{"no straggler"}},
		"since": {since, []string{
			"rank 2 arrives last in 30 of 30 gloo collectives of 4 ranks since ", "(likely;", "over the whole capture, including when it was not late",
		}, []string{"no straggler"}},
		"even": {even, []string{"no straggler: in 59 gloo collectives of 4 ranks, no rank is repeatedly late"}, []string{"arrives last", "for rank"}},
	} {
		got := glooSummary(t, c.run)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, got)
			}
		}
		for _, not := range c.not {
			if strings.Contains(got, not) {
				t.Errorf("%s: %q in\n%s", name, not, got)
			}
		}
	}
}

// The late rank is the same whatever the clock offsets are, and whichever other ranks were recorded.
func TestLateInGlooHolds(t *testing.T) {
	const want = "rank 2 arrives last in 59 of 59 gloo collectives of "
	for _, ahead := range [][]int64{{0, 0, 0, 0}, {0, 2_000_000, -1_500_000, 700_000}, {0, 7_000_000_000, -3_000_000_000, 40_000_000}} {
		g := glooRun()
		g.Ahead = ahead
		if got := glooSummary(t, g); !strings.Contains(got, want+"4 ranks") {
			t.Errorf("clocks ahead by %v:\n%s", ahead, got)
		}
	}
	dir := glooRun().write(t)
	if got := glooSummaryIn(t, dir, "--rank", "0", "--rank", "2", "--rank", "3"); !strings.Contains(got, want+"3 ranks") {
		t.Errorf("without rank 1:\n%s", got)
	}
	if got := glooSummaryIn(t, dir, "--rank", "0", "--rank", "1", "--rank", "3"); strings.Contains(got, "arrives last") || !strings.Contains(got, "ranks of the group are not in the files, at 59 of 59 gloo collectives") {
		t.Errorf("without the late rank:\n%s", got)
	}
}

// A thread that keeps launching work is not held up by gloo, and an annotation that requests a device collective is not a host collective.
func TestNotHeldUpInGloo(t *testing.T) {
	goes, asks := glooRun(), glooRun()
	goes.GoesOn, goes.Late = true, -1
	asks.Op, asks.Late = "nccl:all_reduce", -1
	for name, g := range map[string]glooJob{"goes on": goes, "asks": asks} {
		if got := glooSummary(t, g); strings.Contains(got, "in a gloo collective") || strings.Contains(got, "profilers start") || strings.Contains(got, "while the host is in gloo") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// If the files do not name hosts, gloo collectives bound the clock offsets, and reveal a clock that is far off.
func TestClocksByGloo(t *testing.T) {
	g := glooRun()
	g.Late, g.Ahead = -1, []int64{0, 500_000, 3_000_000_000, 0}
	dir := g.write(t)
	r := sgtrace(t, dir, "merge", "-o", "m.pftrace", ".")
	if r.status != exitOK {
		t.Fatalf("status %d: %s", r.status, r.err)
	}
	text := r.out + r.err
	for _, want := range []string{
		"clock of rank 1: not moved, matched: collectives of hosts agree with its time, 120 bounds, within ",
		"clock of rank 2: 2999.", "ms ahead, matched by collectives of hosts, 120 bounds, within ",
	} {
		if !strings.Contains(text, want) && !strings.Contains(text, strings.Replace(want, "2999.", "3000.", 1)) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// Reports show tables of host collectives beside those of device collectives.
func TestTablesOfGloo(t *testing.T) {
	dir := glooRun().write(t)
	r := sgtrace(t, dir, "report", "--by-rank", "--table", "gloo.waits", "--format", "csv", ".")
	if !strings.Contains(r.out, "rank 0,rank 2,") || strings.Contains(r.out, ",rank 1,") {
		t.Errorf("status %d: %s%s", r.status, r.out, r.err)
	}
	r = sgtrace(t, dir, "report", "--by-rank", ".")
	for _, want := range []string{"Straggler: rank 2 arrives last in 59 of 59 gloo collectives", "Gloo collectives by rank\n", "Who waits for whom in gloo collectives", "Calls of gloo collectives by rank and kind",
		"left out: 1 collective, with which a rank's recording begins"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in\n%s", want, r.out)
		}
	}
}
