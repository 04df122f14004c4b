package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// The row sizes of the tables determine how many events fit into memory.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"Slice", unsafe.Sizeof(Slice{}), 32},
		{"Instant", unsafe.Sizeof(Instant{}), 24},
		{"Sample", unsafe.Sizeof(Sample{}), 24},
		{"Flow", unsafe.Sizeof(Flow{}), 12},
		{"Rank", unsafe.Sizeof(Rank{}), 12},
	} {
		if c.got != c.want {
			t.Errorf("%s has %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}

func TestRankString(t *testing.T) {
	for _, c := range []struct {
		rank Rank
		want string
	}{
		{NoRank, ""},
		{Rank{0, 1, 2, 3, -1}, "DP2 PP1 TP0 EP3"},
		{Rank{-1, -1, 4, -1, 9}, "DP4"},
		{Rank{-1, -1, -1, -1, 7}, "rank 7"},
	} {
		if got := c.rank.String(); got != c.want {
			t.Errorf("%+v prints %q, want %q", c.rank, got, c.want)
		}
	}
}

func newBuilder() (*Builder, *Diags) {
	var d Diags
	return NewBuilder(NewSymbols(), NewArgs(), &d), &d
}

func interval(s Slice) [2]int64 { return [2]int64{int64(s.Time), int64(s.End())} }

func TestFinishNests(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, want [][2]int64
	}{
		{"overhanging child is cut at its end", [][2]int64{{0, 100}, {50, 101}}, [][2]int64{{0, 100}, {50, 100}}},
		{"early sibling is cut at its start", [][2]int64{{0, 100}, {99, 200}}, [][2]int64{{0, 100}, {100, 200}}},
		{"child follows a sibling that moved", [][2]int64{{0, 100}, {90, 200}, {95, 98}}, [][2]int64{{0, 100}, {100, 200}, {100, 100}}},
		{"equal starts: longest first", [][2]int64{{0, 10}, {0, 30}, {0, 20}}, [][2]int64{{0, 30}, {0, 20}, {0, 10}}},
		{"touching slices stay", [][2]int64{{0, 10}, {10, 20}, {20, 20}}, [][2]int64{{0, 10}, {10, 20}, {20, 20}}},
		{"out of order", [][2]int64{{20, 30}, {0, 10}}, [][2]int64{{0, 10}, {20, 30}}},
	} {
		b, _ := newBuilder()
		track := b.Track(Track{Kind: KindThread})
		for _, iv := range c.in {
			b.Slice(Slice{Time: Time(iv[0]), Dur: iv[1] - iv[0], Track: track}, 0)
		}
		tr := b.Finish()
		if err := Validate(tr); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got [][2]int64
		for _, s := range tr.Slices[1:] {
			got = append(got, interval(s))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCutSliceKeepsTrueTimes(t *testing.T) {
	b, _ := newBuilder()
	track := b.Track(Track{Kind: KindThread})
	key := b.Intern("k")
	args := b.Args().Put(ArgList(nil).String(key, "v"))
	p := b.Slice(Slice{Time: 100, Dur: 100, Track: track}, 0)
	b.Child(p, Slice{Time: 90, Dur: 200, Args: args}, 0)
	tr := b.Finish()
	s := tr.Slices[2]
	if interval(s) != [2]int64{100, 200} {
		t.Fatalf("child is %v", interval(s))
	}
	got := map[string]int64{}
	for a := range tr.Args.All(s.Args) {
		if a.Kind == ArgInt {
			got[tr.Syms.Name(a.Key)] = a.Int()
		}
	}
	if got["true_start_ns"] != 90 || got["true_end_ns"] != 290 {
		t.Errorf("true times are %v", got)
	}
	if a, ok := tr.Args.Find(s.Args, key); !ok || string(a.Bytes()) != "v" {
		t.Errorf("own arguments are lost")
	}
}

// A slice that is cut at both ends keeps its original times.
func TestSliceCutTwiceKeepsTrueTimes(t *testing.T) {
	b, _ := newBuilder()
	track := b.Track(Track{Kind: KindThread})
	b.Slice(Slice{Time: 0, Dur: 100, Track: track}, 0)
	b.Slice(Slice{Time: 50, Dur: 49, Track: track}, 0)
	b.Slice(Slice{Time: 98, Dur: 4, Track: track}, 0) // begins inside the second slice, and ends after the first
	tr := b.Finish()
	s := tr.Slices[3]
	start, _ := tr.Args.Find(s.Args, tr.Syms.Intern("true_start_ns"))
	end, _ := tr.Args.Find(s.Args, tr.Syms.Intern("true_end_ns"))
	if start.Int() != 98 || end.Int() != 102 {
		t.Errorf("true times are %d and %d, want 98 and 102", start.Int(), end.Int())
	}
}

func TestNegativeDurationIsCounted(t *testing.T) {
	b, d := newBuilder()
	track := b.Track(Track{Kind: KindThread})
	b.Slice(Slice{Time: 10, Dur: -3, Track: track}, 0)
	if err := Validate(b.Finish()); err != nil {
		t.Error(err)
	}
	if all := d.All(); len(all) != 1 || all[0].Code != "negative-duration" || all[0].Severity != DataLoss {
		t.Errorf("diagnostics: %v", all)
	}
}

// Any set of intervals becomes a valid model without losing a slice.
func TestFinishIsAlwaysValid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b, _ := newBuilder()
		tracks := []TrackID{b.Track(Track{Kind: KindThread}), b.Track(Track{Kind: KindThread})}
		n := 2 + r.IntN(40)
		for range n {
			b.Slice(Slice{Time: Time(r.Int64N(60)), Dur: r.Int64N(40) - 2, Track: tracks[r.IntN(2)]}, 0)
		}
		for range 5 {
			b.Flow(Flow{From: SliceID(r.IntN(n + 1)), To: SliceID(r.IntN(n + 1))})
		}
		tr := b.Finish()
		if err := Validate(tr); err != nil {
			t.Fatal(err)
		}
		if len(tr.Slices) != n+1 {
			t.Fatalf("%d slices of %d", len(tr.Slices)-1, n)
		}
	}
}

func TestFlowsFollowTheirSlices(t *testing.T) {
	b, _ := newBuilder()
	track := b.Track(Track{Kind: KindThread})
	late := b.Slice(Slice{Time: 50, Dur: 1, Track: track}, 0)
	early := b.Slice(Slice{Time: 1, Dur: 1, Track: track}, 0)
	b.Flow(Flow{From: early, To: late})
	tr := b.Finish()
	f := tr.Flows[0]
	if tr.Slices[f.From].Time != 1 || tr.Slices[f.To].Time != 50 {
		t.Errorf("flow goes from %d to %d", tr.Slices[f.From].Time, tr.Slices[f.To].Time)
	}
}

func TestArgsRoundTrip(t *testing.T) {
	syms, args := NewSymbols(), NewArgs()
	k := func(s string) Sym { return syms.Intern(s) }
	base := args.Put(ArgList(nil).Uint(k("big"), 1<<63+5))
	list := ArgList(nil).String(k("s"), "text").Int(k("i"), -7).Float(k("f"), 0.5).Bool(k("b"), true)
	list = list.Array(k("a"), ArgList(nil).Int(0, 1).String(0, "x"))
	list = list.Dict(k("d"), ArgList(nil).Int(k("in"), 2)).Extend(base)
	id := args.Put(list)
	var got []string
	for a := range args.All(id) {
		got = append(got, syms.Name(a.Key))
		switch syms.Name(a.Key) {
		case "s":
			if string(a.Bytes()) != "text" {
				t.Errorf("s = %q", a.Bytes())
			}
		case "i":
			if a.Int() != -7 {
				t.Errorf("i = %d", a.Int())
			}
		case "f":
			if a.Float() != 0.5 {
				t.Errorf("f = %v", a.Float())
			}
		case "big":
			if a.Uint() != 1<<63+5 {
				t.Errorf("big = %d", a.Uint())
			}
		case "a":
			n := 0
			for range a.Elems {
				n++
			}
			if n != 2 {
				t.Errorf("a has %d elements", n)
			}
		}
	}
	if want := []string{"s", "i", "f", "b", "a", "d", "big"}; !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}

func TestArgsCrossBlocks(t *testing.T) {
	syms, args := NewSymbols(), NewArgs()
	key := syms.Intern("k")
	text := make([]byte, 300_000)
	var ids []ArgsID
	for i := range 20 {
		text[0] = byte(i)
		ids = append(ids, args.Put(ArgList(nil).Bytes(key, text)))
	}
	for i, id := range ids {
		if a, ok := args.Find(id, key); !ok || a.Bytes()[0] != byte(i) || len(a.Bytes()) != len(text) {
			t.Fatalf("list %d does not come back", i)
		}
	}
	huge := args.Put(ArgList(nil).Bytes(key, make([]byte, 5<<20)))
	if a, ok := args.Find(huge, key); !ok || len(a.Bytes()) != 5<<20 {
		t.Error("a list longer than a block does not come back")
	}
}

func TestDiagsKeepTheFirstPosition(t *testing.T) {
	var d Diags
	d.Add(RankHost.At(Pos{File: "f", Line: 9}, "late"))
	d.Add(RankHost.At(Pos{File: "f", Line: 3}, "early"))
	d.Add(RankHost.At(Pos{File: "g", Line: 1}, "other"))
	all := d.All()
	if len(all) != 2 || all[0].Count != 2 || all[0].Msg != "early" || d.Worst() != Notice {
		t.Errorf("got %+v", all)
	}
}

func TestDepthIsBounded(t *testing.T) {
	b, d := newBuilder()
	track := b.Track(Track{Kind: KindThread})
	const n = 2000
	for i := range Time(n) {
		b.Slice(Slice{Time: i, Dur: int64(2*n - 2*i), Track: track}, 0)
	}
	tr := b.Finish()
	if err := Validate(tr); err != nil {
		t.Error(err)
	}
	flat := 0
	for _, s := range tr.Slices[1:] {
		if s.Dur == 0 {
			flat++
		}
	}
	if all := d.All(); flat != n-maxDepth || len(all) != 1 || all[0].Count != flat {
		t.Errorf("%d slices lost their duration, diagnostics %v", flat, all)
	}
}

// Forked Builders give the same trace as one Builder that draws all parts, whether or not the sizes
// were guessed right.
func TestForkAndJoin(t *testing.T) {
	fill := func(b *Builder, name string, n int) (prev SliceID) {
		track := b.Track(Track{Kind: KindThread, Name: b.Intern(name)})
		lane := b.Track(Track{Parent: track, Kind: KindThread, Name: b.Intern(name + " lane")})
		counter := b.Track(Track{Parent: track, Kind: KindCounter, Name: b.Intern(name + " counter")})
		for i := range n {
			s := b.Slice(Slice{Time: Time(10 * i), Dur: 12, Track: lane, Name: b.Intern(name)}, 1)
			b.Instant(Instant{Time: Time(10 * i), Track: lane})
			b.Sample(Sample{Time: Time(i), Value: float64(i), Track: counter})
			if prev != 0 {
				b.Flow(Flow{From: prev, To: s})
			}
			prev = s
		}
		return prev
	}
	describe := func(tr *Trace) (lines []string) {
		if err := Validate(tr); err != nil {
			t.Error(err)
		}
		path := func(id TrackID) (path string) {
			for ; id != 0; id = tr.Tracks[id].Parent {
				path = "/" + tr.Syms.Name(tr.Tracks[id].Name) + path
			}
			return path
		}
		for i := range tr.Tracks {
			lines = append(lines, path(TrackID(i)))
		}
		for i, s := range tr.Slices[1:] {
			lines = append(lines, fmt.Sprint("slice ", path(s.Track), s.Time, s.Dur, tr.Syms.Name(s.Name), tr.About[i+1]))
		}
		for _, x := range tr.Instants {
			lines = append(lines, fmt.Sprint("instant ", path(x.Track), x.Time))
		}
		for _, x := range tr.Samples {
			lines = append(lines, fmt.Sprint("sample ", path(x.Track), x.Time, x.Value))
		}
		return append(lines, fmt.Sprint(tr.Flows))
	}
	one, _ := newBuilder()
	one.Subject(Subject{})
	fill(one, "a", 5)
	under := one.Track(Track{Name: one.Intern("c")})
	last := fill(one, "b", 7)
	of := TrackID(len(one.t.Tracks))
	one.Flow(Flow{From: last, To: fill(one, "c", 3)})
	one.t.Tracks[of].Parent = under
	fill(one, "d", 2)
	want := describe(one.Finish())
	for _, rooms := range [][3]Capacity{
		{{5, 5, 5, 4}, {7, 7, 7, 6}, {3, 3, 3, 2}},    // exact
		{{9, 9, 9, 9}, {9, 9, 9, 9}, {9, 9, 9, 9}},    // too large
		{{2, 1, 0, 0}, {1, 2, 3, 0}, {1, 0, 0, 1}},    // too small
		{{5, 9, 0, 0}, {0, 7, 20, 3}, {4, 0, 2, 2}},   // mixed
		{{20, 20, 0, 0}, {5, 5, 0, 0}, {9, 9, 20, 9}}, // too small after a gap
	} {
		b, _ := newBuilder()
		b.Subject(Subject{})
		f := b.Fork(rooms[0], rooms[1], rooms[2])
		to, from := fill(f[1].Builder, "c", 3), fill(f[0].Builder, "b", 7)
		fill(b, "a", 5)
		f[1].Under = b.Track(Track{Name: b.Intern("c")})
		shifts := Join(f...)
		b.Flow(Flow{From: from + shifts[0], To: to + shifts[1]})
		fill(b, "d", 2)
		if got := describe(b.Finish()); !slices.Equal(got, want) {
			t.Errorf("rooms %v: %q, want %q", rooms, got, want)
		}
	}
}
