package drawing

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// Pinned rows exist in the trace, number at most a dozen, and have distinct names. Rows that
// findings are about come first.
func TestPinnedRows(t *testing.T) {
	set := simulated(t, 100)
	findings := []Finding{{Name: "a", Title: "a", Rank: "decode DP1 TP1"}, {Name: "b", Title: "b", Rank: "prefill TP1"}}
	got := written(t, set, Options{Findings: findings})
	attributes := map[string]string{}
	for _, a := range got.Attributes {
		attributes[a.Key] = a.Value
	}
	opening := trace.OpeningOf(attributes)
	if n := len(opening.Pin); n < 5 || n > maxPinned {
		t.Errorf("%d rows are pinned", n)
	}
	names := map[string]bool{}
	for _, path := range opening.Pin {
		track := got.Track(path)
		if track == nil {
			t.Errorf("there is no row %s", path)
			continue
		}
		if names[track.Name] {
			t.Errorf("%s is pinned twice", track.Name)
		}
		names[track.Name] = true
	}
	for i, want := range []string{"queued · decode DP1 TP1", "running · decode DP1 TP1", "queued · prefill TP1", "running · prefill TP1"} {
		if path := opening.Pin[i]; !strings.HasSuffix(path, " > "+want) {
			t.Errorf("row %d is %s, want %s", i, path, want)
		}
	}
	for _, path := range opening.Pin[4:] {
		if !strings.HasSuffix(path, "TP0") {
			t.Errorf("%s is pinned, which no finding is about, and whose TP rank 0 does the same", path)
		}
	}
}

// The view begins at the first finding with a start time, or else at the profiles if they are
// short, and lies within the trace.
func TestTimeToShow(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	b.Slice(trace.Slice{Time: 1000, Dur: 1000, Track: b.Track(trace.Track{}), Name: b.Intern("s")}, 0)
	tr := b.Finish()
	for _, c := range []struct {
		findings []Finding
		profiles inputs.Extent
		from, to trace.Time
	}{
		{nil, inputs.Extent{}, 0, 0},
		{nil, inputs.Extent{From: 1400, To: 1500}, 1395, 1505},
		{nil, inputs.Extent{From: 1000, To: 1900}, 0, 0},
		{nil, inputs.Extent{From: 1000, To: 1100}, 1000, 1105},
		{[]Finding{{}, {Since: 1500}, {Since: 1200}}, inputs.Extent{From: 1400, To: 1500}, 1480, 2000},
		{[]Finding{{Since: 1500, Until: 1600}}, inputs.Extent{}, 1480, 1620},
		{[]Finding{{Until: 1600}}, inputs.Extent{}, 0, 0},
	} {
		if from, to := timeToShow(tr, c.findings, c.profiles); from != c.from || to != c.to {
			t.Errorf("%+v, %v: %d to %d, want %d to %d", c.findings, c.profiles, from, to, c.from, c.to)
		}
	}
}

// A counter with very many samples is not pinned, since it would be redrawn in every frame.
func TestDenseCountersAreNotPinned(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	process := b.Track(trace.Track{Kind: trace.KindProcess, Name: b.Intern("process")})
	for name, samples := range map[string]int{"queued · TP0": maxSamples + 1, "running · TP0": maxSamples} {
		counter := b.Track(trace.Track{Parent: process, Kind: trace.KindCounter, Name: b.Intern(name)})
		for i := range samples {
			b.Sample(trace.Sample{Time: trace.Time(i), Value: 1, Track: counter})
		}
	}
	if got := rowsToPin(b.Finish(), nil); len(got) != 1 || !strings.HasSuffix(got[0], "running · TP0") {
		t.Errorf("pinned are %q", got)
	}
}

// For the rank that a finding points to, the row that shows the finding comes first. Copy rows are
// pinned only for findings about copies, and lanes below a row never are.
func TestRowsOfAFindingComeFirst(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	top := b.Track(trace.Track{Name: b.Intern(profile.SideBySide)})
	for _, name := range []string{"steps · rank 0", "compute · rank 0", "copy · rank 0", "steps · rank 1", "compute · rank 1", "compute · rank 1, 2 at once", "communication · rank 1", "copy · rank 1"} {
		is := trace.NoRank
		is.Global = int32(name[strings.Index(name, "rank ")+5] - '0')
		track := b.Track(trace.Track{Parent: top, Kind: trace.KindStream, Name: b.Intern(name), Rank: is})
		b.Slice(trace.Slice{Time: 1, Dur: 1, Track: track, Name: b.Intern("s")}, 0)
	}
	built := b.Finish()
	for _, c := range []struct {
		of   kernelname.Class
		want string
	}{
		{kernelname.ClassCompute, "steps · rank 1, compute · rank 1, communication · rank 1, steps · rank 0, compute · rank 0"},
		{kernelname.ClassCommunication, "communication · rank 1, steps · rank 1, compute · rank 1, steps · rank 0, compute · rank 0"},
		{kernelname.ClassMemory, "copy · rank 1, steps · rank 1, compute · rank 1, communication · rank 1, steps · rank 0, compute · rank 0"},
	} {
		var names []string
		for _, path := range rowsToPin(built, []Finding{{Rank: "rank 1", Shows: c.of}}) {
			names = append(names, strings.TrimPrefix(path, profile.SideBySide+trace.PathSeparator))
		}
		if got := strings.Join(names, ", "); got != c.want {
			t.Errorf("%v: pinned are %s, want %s", c.of, got, c.want)
		}
	}
}

// The heading of the findings shows the costliest ones that fit on one track without overlap.
func TestHeadOfFindings(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	drawFindings(b, &Options{Findings: []Finding{{Title: "all"}, {Title: "late", Since: 50}, {Title: "across", Since: 20, Until: 70}, {Title: "within", Since: 60, Until: 70}}},
		nil, inputs.Extent{From: 0, To: 100}, inputs.Extent{})
	built := b.Finish()
	var got []string
	for i := range built.Slices {
		if s := &built.Slices[i]; built.Syms.Name(built.Tracks[s.Track].Name) == profile.Findings {
			got = append(got, built.Syms.Name(s.Name))
		}
	}
	if slices.Sort(got); strings.Join(got, " ") != "all late within" {
		t.Errorf("the heading shows %q", got)
	}
}
