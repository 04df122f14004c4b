package perfetto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

func encode(t testing.TB, tr *trace.Trace) []byte {
	t.Helper()
	if err := trace.Validate(tr); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func roundTrip(t testing.TB, tr *trace.Trace) *readback.Trace {
	t.Helper()
	got, err := readback.Decode(encode(t, tr))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRandomModelsComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1500 {
		tr := readback.Model(readback.RandomBytes(r, r.IntN(1200)))
		data := encode(t, tr)
		got, err := readback.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, tr, got)
		if !bytes.Equal(data, encodeInWindows(t, tr, 1+r.IntN(5))) {
			t.Error("windows make a difference")
		}
		if t.Failed() {
			t.Fatalf("model %d", i)
		}
	}
}

func encodeInWindows(t testing.TB, tr *trace.Trace, rows int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, tr, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The output does not depend on the number of cores or the division of work.
func TestCoresDoNotMatter(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(cores)
	tr := kineto(30_000)
	want := encode(t, tr)
	for n := 1; n <= 2*maxWorkers; n *= 2 {
		runtime.GOMAXPROCS(n)
		for _, rows := range []int{1, 50, windowRows, 1 << 20} {
			if !bytes.Equal(want, encodeInWindows(t, tr, rows)) {
				t.Fatalf("%d cores and windows of %d rows make a difference", n, rows)
			}
		}
	}
}

func FuzzWrite(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 8 {
		f.Add(readback.RandomBytes(r, n*100))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tr := readback.Model(data)
		compare(t, tr, roundTrip(t, tr))
		whole := encode(t, tr)
		for _, rows := range []int{1, 1 + len(data)%7, 1 << 20} {
			if !bytes.Equal(whole, encodeInWindows(t, tr, rows)) {
				t.Fatalf("windows of %d rows make a difference", rows)
			}
		}
		names := slices.Clone(tr.Syms.Names())
		slices.Reverse(names)
		if !bytes.Equal(whole, encode(t, readback.Model(data, names...))) {
			t.Fatal("the numbers of symbols make a difference")
		}
	})
}

func TestManyWindowsComeBack(t *testing.T) {
	tr := serving(100_000)
	tr.Instants = tr.Instants[:500] // compare takes quadratic time in them
	compare(t, tr, roundTrip(t, tr))
	tr = kineto(30_000)
	compare(t, tr, roundTrip(t, tr))
}

func TestOrderOfEqualTimes(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	host := b.Track(trace.Track{Kind: trace.KindHost, Name: b.Intern("host")})
	gauge := b.Track(trace.Track{Parent: host, Kind: trace.KindCounter, Name: b.Intern("queue"), Unit: b.Intern("requests"), Order: 2})
	lane := b.Track(trace.Track{Parent: host, Kind: trace.KindThread, Name: b.Intern("lane"), Desc: b.Intern("from a test"), Order: 1})
	slice := func(name string, from, to trace.Time) trace.SliceID {
		return b.Slice(trace.Slice{Time: 1000 + from, Dur: int64(to - from), Track: lane, Name: b.Intern(name)}, 0)
	}
	outer := slice("outer", 0, 10)
	slice("inner", 5, 10)
	slice("next", 10, 20)
	first := slice("first", 10, 15)
	slice("point", 10, 10)
	b.Instant(trace.Instant{Time: 1010, Track: lane, Name: b.Intern("mark"), Args: b.Args().Put(trace.ArgList(nil).Int(b.Intern("n"), 7))})
	b.Sample(trace.Sample{Time: 1010, Track: gauge, Value: 2.5})
	b.Flow(trace.Flow{From: outer, To: first})
	b.Attribute("tool", "test")
	got := roundTrip(t, b.Finish())
	want := `# tool: test
host
host > lane (from a test)
  0 +10 outer
    5 +5 inner
  10 +10 next
    10 +5 first
      10 +0 point
  10 ! mark n=7
host > queue [requests]
  10 = 2.5
host > lane / outer -> host > lane / first
`
	if got.Text() != want {
		t.Errorf("got\n%s\nwant\n%s", got.Text(), want)
	}
	on := got.On(got.Track("host > lane"))
	if out := on[0].Out; len(out) != 1 || out[0] != on[3] || on[3].In[0] != on[0] {
		t.Errorf("arrows from %v", out)
	}
	if in := got.Instants[0].Parent; in == nil || in.Name != "first" {
		t.Errorf("the instant is in %v, want the innermost slice that is not over", in)
	}
}

// Lengths of messages and strings take one to four bytes.
func TestLongArguments(t *testing.T) {
	for _, size := range []int{0, 100, 127, 128, 16_000, 16_400, 2_100_000} {
		b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
		key := b.Intern("text")
		args := trace.ArgList(nil).String(key, strings.Repeat("x", size))
		args = args.Dict(b.Intern("nested"), trace.ArgList(nil).Array(key, trace.ArgList(nil).String(0, strings.Repeat("y", size))))
		b.Slice(trace.Slice{Time: 5, Track: b.Track(trace.Track{}), Args: b.Args().Put(args)}, 0)
		tr := b.Finish()
		compare(t, tr, roundTrip(t, tr))
	}
}

// Arguments that exceed a worker's buffer are encoded separately.
func TestManyLongArguments(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	key, lane := b.Intern("values"), b.Track(trace.Track{})
	var values trace.ArgList
	for i := range 3000 {
		values = values.Float(0, float64(i))
	}
	args := b.Args().Put(trace.ArgList(nil).Array(key, values))
	const size = 3000 * 13
	for i := range trace.Time(maxContents/size + 5) {
		b.Slice(trace.Slice{Time: i, Dur: 1, Track: lane, Args: args}, 0)
	}
	tr := b.Finish()
	compare(t, tr, roundTrip(t, tr))
}

// Beyond maxValues distinct values, an argument is written inline, unless it belongs to a subject.
func TestUnrepeatedTextIsNotInterned(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	lane := b.Track(trace.Track{})
	shape, rid := b.Intern("shape"), b.Intern("rid")
	for i := range 3 * maxValues {
		text := fmt.Sprintf("text that is %d bytes long or so", i)
		about := b.Subject(trace.Subject{Args: b.Args().Put(trace.ArgList(nil).String(rid, text))})
		args := b.Args().Put(trace.ArgList(nil).String(shape, text))
		b.Slice(trace.Slice{Time: trace.Time(2 * i), Dur: 1, Track: lane, Args: args}, about)
		b.Slice(trace.Slice{Time: trace.Time(2*i + 1), Dur: 1, Track: lane, Args: args}, about)
	}
	tr := b.Finish()
	data := encode(t, tr)
	// Once for each subject and each interned shape, and twice for the others.
	if n, want := bytes.Count(data, []byte("bytes long or so")), maxValues*(3+1+2*2); n != want {
		t.Errorf("%d texts, want %d", n, want)
	}
	got, err := readback.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, tr, got)
}

// Symbol numbers depend on the scheduling of readers, and do not affect the output.
func TestSymbolNumbersDoNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		data := readback.RandomBytes(r, 600)
		tr := readback.Model(data)
		first := slices.Clone(tr.Syms.Names())
		r.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
		if !bytes.Equal(encode(t, tr), encode(t, readback.Model(data, first...))) {
			t.Fatal("the same trace with other symbol numbers is written differently")
		}
	}
}

func TestTimesBefore1970AreRefused(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	b.Slice(trace.Slice{Time: -5, Dur: 10, Track: b.Track(trace.Track{})}, 0)
	var out bytes.Buffer
	if err := Write(&out, b.Finish()); err == nil || out.Len() > 0 {
		t.Errorf("error %v after %d bytes", err, out.Len())
	}
}

// fullDisk accepts n bytes.
type fullDisk struct{ n int }

var errFull = errors.New("disk full")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.n -= len(p); d.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestEveryWriteIsChecked(t *testing.T) {
	tr := serving(40_000)
	var size counter
	if err := Write(&size, tr); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{0, bufferSize, int(size) / 2, int(size) - 1} {
		if err := Write(&fullDisk{room}, tr); !errors.Is(err, errFull) {
			t.Errorf("with room for %d of %d bytes: error %v", room, size, err)
		}
	}
	if err := Write(&fullDisk{int(size)}, tr); err != nil {
		t.Errorf("with room for all: %v", err)
	}
}

func TestWritesAreLarge(t *testing.T) {
	var sizes []int
	err := Write(writerFunc(func(p []byte) (int, error) {
		sizes = append(sizes, len(p))
		return len(p), nil
	}), serving(40_000))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range sizes[:len(sizes)-1] {
		if n < bufferSize {
			t.Fatalf("writes of %v bytes", sizes)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestAllocationsDoNotGrowWithEvents(t *testing.T) {
	allocs := func(n int) float64 {
		tr := serving(n)
		for i := range tr.About {
			tr.About[i] = 0 // every subject has a string to intern
		}
		least := math.Inf(1) // minimum of three: other goroutines may allocate, and the collector drops buffers
		for range 3 {
			least = min(least, testing.AllocsPerRun(1, func() {
				if err := Write(io.Discard, tr); err != nil {
					t.Fatal(err)
				}
			}))
		}
		return least
	}
	small, large := allocs(20_000), allocs(80_000)
	if large > small+100 {
		t.Errorf("%v allocations for 20,000 slices, %v for 80,000", small, large)
	}
}

// A burst far from everything else is divided as finely as other times.
func TestWindowsFollowBursts(t *testing.T) {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	lane, counter := b.Track(trace.Track{}), b.Track(trace.Track{Kind: trace.KindCounter})
	const rows = 400
	for i := range trace.Time(50 * rows) {
		at := 1_700_000_000_000_000_000 + i
		b.Slice(trace.Slice{Time: at, Track: lane}, 0)
		b.Instant(trace.Instant{Time: at, Track: lane})
		b.Sample(trace.Sample{Time: at, Track: counter})
	}
	b.Slice(trace.Slice{Time: 5, Dur: 10, Track: lane}, 0)
	tr := b.Finish()
	_, to, _ := tr.Bounds()
	ends := windows(tr, to, rows)
	if n := len(ends); n < 145 || n > 160 {
		t.Errorf("%d windows for %d times %d rows", n, 150, rows)
	}
	for i := 2; i < len(ends); i++ {
		if n := ends[i] - ends[i-1]; n <= 0 || n > rows/3*2 {
			t.Fatalf("window %d has %d times 3 rows", i, n)
		}
	}
}
