package finding

import (
	"slices"
	"testing"
)

// A symptom becomes evidence of the finding with most of its time, if the findings
// before it cover nearly all of that, and if it did not begin earlier.
func TestFold(t *testing.T) {
	cause, other := late(), late()
	cause.Text, cause.Since, other.Text = "cause", 1e12, "other"
	symptom := Finding{Kind: Tail, Text: "symptom", Brief: "on tenant-07"}
	early := symptom
	early.Since = 1
	is := func(f *Finding) bool { return f.Kind == Tail }
	for _, test := range []struct {
		f    Finding
		part float64
		want int
	}{{symptom, 0.9, 2}, {symptom, 0.5, 3}, {early, 0.9, 3}, {late(), 0.9, 3}} {
		got := Fold([]Finding{other, cause, test.f}, []Taken{{}, {}, {By: 1, Part: test.part}}, is)
		if len(got) != test.want {
			t.Errorf("%q, of which others have %v: %d findings, want %d", test.f.Text, test.part, len(got), test.want)
		}
		if test.want == 2 && (got[1].Text != "cause; on tenant-07" || got[1].Evidence[len(got[1].Evidence)-1].Text != "symptom") {
			t.Errorf("%q with %q", got[1].Text, Sentences(got[1].Evidence))
		}
	}
}

// A rank that both ends steps late and makes them longer costs the larger of the two times, once.
func TestMergeStragglers(t *testing.T) {
	leave := func(ns int64) Claim { return func(_ int, left []int64) { left[0] = min(left[0], ns) } }
	ends, longer := late(), late()
	ends.Kind, ends.CostBasis, ends.Cost, ends.Claim = Straggler, RequestTime, 0.1, leave(90)
	longer.Kind, longer.CostBasis, longer.Cost, longer.Claim = Straggler, RequestTime, 0.3, leave(70)
	got := Merge([]Finding{ends, longer}, nil)
	left := []int64{100}
	if got[0].Claim(0, left); len(got) != 1 || got[0].Cost != 0.3 || left[0] != 70 {
		t.Errorf("%d findings, the first costs %v and leaves %d of 100 ns", len(got), got[0].Cost, left[0])
	}
}

// Of a change, a limit that it leads to and the symptom with most of its cost come first, and chances last.
func TestSortEvidence(t *testing.T) {
	cause := Finding{Kind: Load, Text: "arrivals rose", Cost: 0.5, Evidence: []Evidence{ByChance(1e-13), Sentence("twice as many come")}}
	for _, f := range []Finding{
		{Kind: Change, Text: "tokenizing takes longer", Cost: 0.1},
		{Kind: Load, Text: "requests wait", Cost: 0.4, Evidence: []Evidence{Sentence("most of them for 1 s")}},
		{Kind: Limit, Text: "the KV cache is full"},
	} {
		cause.take(&f)
	}
	found := []Finding{cause}
	SortEvidence(found)
	want := []string{"the KV cache is full", "requests wait", "most of them for 1 s", "twice as many come", "tokenizing takes longer", "p < 1e-12 if nothing had changed"}
	if got := Sentences(found[0].Evidence); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
