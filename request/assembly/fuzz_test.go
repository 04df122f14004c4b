package assembly_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// FuzzBuild assembles requests from dumps with invalid spans, links, names, ids, and times, made by
// replacing bytes of a real dump in several places. Nothing panics or hangs, all references have
// targets, and the result is reproducible.
func FuzzBuild(f *testing.F) {
	dumps := testinput.EveryMode(f, 3)
	f.Add(uint8(0), []byte{})
	f.Add(uint8(1), []byte("\x00\x10\x01\x00\x20\x02\x00\x30\x03"))
	f.Add(uint8(2), bytes.Repeat([]byte("\x17\x88\x05\x55"), 40))
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		dump := testinput.Edit(dumps[int(which)%len(dumps)], edits)
		clock := time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("hangs: %s", dump)) })
		defer clock.Stop()
		set, diags := build(t, "fuzz", dump)
		checkSet(t, set)
		for _, d := range diags {
			if d.Pos.File != "fuzz" || d.Msg == "" || d.Code == "" || d.Count < 1 {
				t.Fatalf("%+v", d)
			}
		}
		again, twice := build(t, "fuzz", dump)
		if fmt.Sprint(set.Requests, set.Parts, set.Threads, set.Procs, diags) != fmt.Sprint(again.Requests, again.Parts, again.Threads, again.Procs, twice) {
			t.Fatal("the same dump gives other requests")
		}
	})
}

// checkSet checks the invariants of a set.
func checkSet(t *testing.T, s *request.Set) {
	t.Helper()
	in := func(what string, i, n int, none bool) {
		if (i < 0 || i >= n) && !(none && i == request.None) {
			t.Fatalf("%s %d of %d", what, i, n)
		}
	}
	parts := make([]int, len(s.Parts))
	last := trace.Time(0)
	for i := range s.Requests {
		r := &s.Requests[i]
		in("gateway", r.Gateway, s.Len(), true)
		if len(s.PartsOf(r)) == 0 || i > 0 && r.Start < last || r.RID == 0 {
			t.Fatalf("request %d, behind %d: %+v", i, last, r)
		}
		last = r.Start
		for _, p := range s.PartsOf(r) {
			in("part", p, len(s.Parts), false)
			parts[p]++
			if s.Parts[p].Request != i {
				t.Fatalf("part %d of request %d says %d", p, i, s.Parts[p].Request)
			}
		}
		m := &r.Metrics
		for name, v := range map[string]int64{"ttft": m.TTFT, "e2e": m.E2E, "queue": m.Queue, "prefill": m.Prefill, "decode": m.Decode,
			"transfer": m.Transfer, "unaccounted": m.Unaccounted, "tokens": m.CompletionTokens, "retractions": m.Retractions} {
			if v < 0 && v != request.Unknown {
				t.Fatalf("%s of request %d is %d", name, i, v)
			}
		}
	}
	threads := make([]int, len(s.Threads))
	for p := range s.Parts {
		part := &s.Parts[p]
		if parts[p] != 1 {
			t.Fatalf("part %d is in %d requests", p, parts[p])
		}
		in("root", part.Root, s.Len(), true)
		in("process", part.Proc, len(s.Procs), true)
		for _, th := range s.ThreadsOf(part) {
			in("thread", th, len(s.Threads), false)
			threads[th]++
			if s.Threads[th].Part != p {
				t.Fatalf("thread %d of part %d says %d", th, p, s.Threads[th].Part)
			}
		}
	}
	stages := map[uint32]bool{}
	for th := range s.Threads {
		thread := &s.Threads[th]
		if threads[th] != 1 {
			t.Fatalf("thread %d is in %d parts", th, threads[th])
		}
		in("row", thread.Row, s.Len(), true)
		in("process", thread.Proc, len(s.Procs), false)
		for _, stage := range s.StagesOf(th) {
			in("stage", int(stage), s.Len(), false)
			if stages[stage] {
				t.Fatalf("stage %d is in two threads", stage)
			}
			stages[stage] = true
		}
	}
}
