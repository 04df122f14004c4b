package request

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// Coverage by intervals equals counting instant by instant.
func TestCoverage(t *testing.T) {
	const length = 60
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var list []Interval
		var covered [length]bool
		for range rng.IntN(8) {
			from := rng.IntN(length)
			to := from + rng.IntN(length-from)
			list = append(list, Interval{trace.Time(from), trace.Time(to)})
			for i := from; i < to; i++ {
				covered[i] = true
			}
		}
		count := func(from, to int) (n int64) {
			for i := from; i < to; i++ {
				if covered[i] {
					n++
				}
			}
			return n
		}
		c := NewCoverage(list)
		if c.Total() != count(0, length) {
			t.Fatalf("seed %d: %d of %d", seed, c.Total(), count(0, length))
		}
		for from := range length {
			if got := c.until(trace.Time(from)); got != count(0, from) {
				t.Fatalf("seed %d: %d before %d, want %d", seed, got, from, count(0, from))
			}
			to := rng.IntN(length)
			if got := c.Overlap(trace.Time(from), trace.Time(to)); got != count(from, to) {
				t.Fatalf("seed %d: %d in [%d, %d), want %d", seed, got, from, to, count(from, to))
			}
		}
	}
}

// Names and ids are replaced in every table, and all of them are learned: no field keeps the
// original.
func TestRedact(t *testing.T) {
	s := planted(t, plant{requests: 2, change: func(s *Set, r int, q *Request) {
		q.Reason = s.Syms.Intern("host aaaa1111bbbb gave up on decode-0000")
		s.Procs[prefillProc].Instance, s.Procs[prefillProc].Service = "instance-of-prefill", "served by aaaa1111bbbb"
		s.Parts[s.PartsOf(q)[0]].Model = s.Syms.Intern("tuned-for-decode-0001")
		s.Fail(0, Failed, s.Syms.Name(q.Reason))
	}})
	before := planted(t, plant{requests: 2})
	r := redact.New([]byte("a key for this test"))
	s.Learn(r)
	s.Redact(r)
	secrets := []string{"aaaa1111bbbb", "cccc2222dddd", "decode-000", "prefill-000", "instance-of-prefill", "planted"}
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			for _, secret := range secrets {
				if strings.Contains(v.String(), secret) {
					t.Errorf("%s keeps %q", path, v.String())
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				visit(path, v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	}
	visit("procs", reflect.ValueOf(s.Procs))
	for i := range s.Parts {
		p := &s.Parts[i]
		visit("parts", reflect.ValueOf([]string{s.Text(p.RID), s.Text(p.FullID), s.Text(p.Room), s.Syms.Name(p.Model), s.Syms.Name(p.FinishReason)}))
	}
	visit("threads", reflect.ValueOf(s.ReasonOf(0)))
	visit("files", reflect.ValueOf(s.Files))
	for i := range s.Requests {
		visit("requests", reflect.ValueOf(struct{ RID, Reason string }{s.Text(s.Requests[i].RID), s.Syms.Name(s.Requests[i].Reason)}))
		if got, plain := s.TraceID(&s.Requests[i]), before.TraceID(&before.Requests[i]); got == plain {
			t.Errorf("trace %s is as it was", got)
		}
	}
	if s.Text(s.Requests[0].RID) == s.Text(s.Requests[1].RID) || s.Procs[decodeProc].Host == s.Procs[prefillProc].Host {
		t.Error("what was different is not")
	}
	if s.Text(s.Requests[0].RID) != s.Text(s.Parts[s.PartsOf(&s.Requests[0])[1]].RID) {
		t.Error("what was the same is not")
	}
}

// A room is the same number in any notation.
func TestRooms(t *testing.T) {
	for text, want := range map[string]string{"255": "0xff", "0xFF": "0xff", "0xff": "0xff", "18446744073709551615": "0xffffffffffffffff",
		"0": "", "0x0": "", "0x": "", "": "", "ff": "", "-1": ""} {
		if got := RoomText(text); got != want || IsRoom(text) != (want != "") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Each constant has a distinct word, which parses to that constant.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for r := Unified; r <= Other; r++ {
		if got, ok := ParseRole(r.String()); got != r || !ok || seen[r.String()] {
			t.Errorf("%v: %v, %v", r, got, ok)
		}
		seen[r.String()] = true
		if serves := slices.Contains(ServingRoles, r); serves != (&Part{Role: r}).Serves() {
			t.Errorf("%v serves: %v", r, !serves)
		}
	}
	if _, ok := ParseRole("nobody"); ok {
		t.Error("nobody is a role")
	}
	words := AllFlags.Words()
	if len(words) != 9 || AllFlags.String() != strings.Join(words, ",") || Flags(0).String() != "" {
		t.Errorf("flags are %v", words)
	}
	for i := range words {
		if got := Flags(1 << i).Words(); !slices.Equal(got, words[i:i+1]) {
			t.Errorf("flag %d is %v, want %s", i, got, words[i])
		}
	}
	for layouts, want := range map[Layouts]string{
		0: "", LayoutV1a: "v1a (2025-09)", LayoutV1a | LayoutV1b: "v1b (2025-10)", LayoutV2: "v2 (2026-04)",
		LayoutV2 | LayoutOldNames: "v2 (2026-02)", LayoutGateway | LayoutVLLM: "gateway, vllm",
	} {
		if got := layouts.String(); got != want {
			t.Errorf("%d: %q, want %q", layouts, got, want)
		}
	}
	if Finished.String() != "finished" || Unfinished.String() != "unfinished" {
		t.Error("statuses have other words")
	}
}

// Every watched meaning belongs to a phase, and tokens are only produced in prefill and decode.
func TestMeanings(t *testing.T) {
	for m := NoMeaning; m <= Caching; m++ {
		phase := m.Phase()
		if slices.Contains(Watched[:], m) && phase == OtherPhase {
			t.Errorf("meaning %d is watched and in no phase", m)
		}
		if m.GivesToken() && phase != PrefillPhase && phase != DecodePhase {
			t.Errorf("a token comes out of %v", phase)
		}
		i := WatchedIndex(&Row{Means: m})
		if (i != None) != slices.Contains(Watched[:], m) || i != None && Watched[i] != m {
			t.Errorf("meaning %d is watched as number %d", m, i)
		}
	}
	s := planted(t, plant{})
	if names := s.WatchedNames(); names[slices.Index(Watched[:], Stepping)] != "step" || names[slices.Index(Watched[:], Sending)] != "" {
		t.Errorf("stages are called %v", names)
	}
}

// Token counts are unknown if any of their terms is.
func TestTokenCounts(t *testing.T) {
	for _, test := range []struct {
		m               Metrics
		prefill, decode int64
	}{
		{Metrics{PromptTokens: 100, CachedTokens: 30, CompletionTokens: 8}, 70, 7},
		{Metrics{PromptTokens: 100, CachedTokens: Unknown, CompletionTokens: 1}, 100, 0},
		{Metrics{PromptTokens: 10, CachedTokens: 30, CompletionTokens: 0}, 0, Unknown},
		{Metrics{PromptTokens: Unknown, CachedTokens: 0, CompletionTokens: Unknown}, Unknown, Unknown},
	} {
		if p, d := test.m.PrefillTokens(), test.m.DecodeTokens(); p != test.prefill || d != test.decode {
			t.Errorf("%+v: %d and %d", test.m, p, d)
		}
	}
}

// Rows with impossible times are reported once, with their position, and give no tokens.
func TestImplausibleRows(t *testing.T) {
	s := planted(t, plant{requests: 1})
	var steps []int
	for i := range s.Rows {
		if s.Rows[i].Means == Stepping && s.Rows[i].Proc == decodeProc {
			steps = append(steps, i)
		}
	}
	s.Rows[steps[0]].End = s.Rows[steps[0]].Start - 5_000_000
	s.Rows[steps[1]].End += 40 * 24 * 3600 * 1e9
	s.Rows[steps[2]].Kind = Unselected
	s.Rows[steps[2]].End = 0
	s.ReportTimes()
	var said []string
	for _, d := range s.Diags.All() {
		said = append(said, d.String())
	}
	text := strings.Join(said, "\n")
	for _, want := range []string{"planted.jsonl:", "ends 5", "before it starts"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if got := s.TokenTimes(&s.Parts[1]); len(got) != 0 {
		t.Errorf("tokens at %v", got)
	}
	if !Plausible(0, Farthest, -Farthest) || Plausible(0, Farthest+1) || Plausible(-Farthest-1) {
		t.Error("times are believed that would wrap around, or others are not")
	}
}
