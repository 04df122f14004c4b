package chrometrace

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// tiny has pieces of at most one event, so that every kind of boundary occurs.
var tiny = parse.Limits{Block: 64, Record: 1 << 20}

// small is for tests that read many short inputs.
var small = parse.Limits{Block: 4096, Record: 1 << 20}

// ragged returns a random number of bytes per read.
type ragged struct {
	r   io.Reader
	rng *rand.Rand
}

func (r *ragged) Read(p []byte) (int, error) {
	return r.r.Read(p[:min(len(p), 1+r.rng.IntN(100))])
}

// chunkings are ways to read the same bytes.
var chunkings = []struct {
	name    string
	limits  parse.Limits
	workers int
	wrap    func(io.Reader) io.Reader
}{
	{"a byte at a time", parse.Usual, 2, iotest.OneByteReader},
	{"data with the error", parse.Usual, 2, iotest.DataErrReader},
	{"random sizes", parse.Usual, 2, func(r io.Reader) io.Reader { return &ragged{r, rand.New(rand.NewPCG(1, 2))} }},
	{"tiny pieces", tiny, 1, same},
	{"tiny pieces, three workers", tiny, 3, same},
	{"tiny pieces, a byte at a time", tiny, 2, iotest.OneByteReader},
	{"pieces of a byte", parse.Limits{Block: 1, Record: 1 << 20}, 2, same},
	{"small pieces", parse.Limits{Block: 500, Record: 1 << 20}, 3, iotest.HalfReader},
}

// damagedDocs are inputs with everything that a parser can meet.
func damagedDocs() map[string]string {
	docs := map[string]string{}
	for _, c := range dialects {
		docs[c.name] = c.data
	}
	for _, c := range malformed {
		docs[c.name] = c.data
	}
	long := kinetoDoc(40)
	docs["long"] = long
	docs["long, rubbish between"] = strings.Replace(long, `"name": "e7"`, "\x00\xff{{{[[\"", 1) + "}}]]" + long
	docs["long, cut"] = long[:len(long)-200] + long
	docs["long, indented otherwise"] = strings.ReplaceAll(long, "\n", "\r\n\t")
	docs["long, compact"] = strings.NewReplacer("\n", "", " ", "").Replace(long)
	docs["arguments like events"] = `{"traceEvents":[` + strings.Repeat(`{"ph":"X","name":"a","pid":1,"tid":1,"ts":5,"args":{"l":[{"name":"x"},{"name":"y"},{"pid":1}]}},`, 20) + `{}]}`
	docs["header of many objects"] = `{"schemaVersion":1,"deviceProperties":[` + strings.Repeat(`{"id":0,"name":"x"},`, 40) + `{"id":1}],` + long[strings.Index(long, `"displayTimeUnit"`):]
	docs["trailer of many objects"] = long[:strings.LastIndex(long, `"traceName"`)] + `"distributedInfo":{"rank":3,"pg_config":[` + strings.Repeat(`{"name":"0"},`, 40) + `{}]},"INFO":["a","b"]}`
	return docs
}

// How an input is split into pieces, and how many workers read them, changes nothing: no event, no
// row number, no diagnostic.
func TestChunkIndependence(t *testing.T) {
	for name, data := range damagedDocs() {
		t.Run(name, func(t *testing.T) {
			want := readWith(Options{Workers: 1}, parse.Usual, same, []byte(data)).everything()
			for _, c := range chunkings {
				got := readWith(Options{Workers: c.workers}, c.limits, c.wrap, []byte(data)).everything()
				if d := diff(got, want); d != "" {
					t.Errorf("%s: %s", c.name, d)
				}
			}
		})
	}
}

// Pieces of every size put a boundary at every byte.
func TestEveryPieceSize(t *testing.T) {
	for name, data := range map[string]string{"sound": kinetoDoc(12), "damaged": kinetoDoc(5) + malformed[0].data + kinetoDoc(5)[300:]} {
		want := readWith(Options{Workers: 1}, parse.Usual, same, []byte(data)).everything()
		for block := range 1200 {
			got := readFuzzed(Options{Workers: 2}, parse.Limits{Block: block + 1, Record: 1 << 20}, same, []byte(data)).everything()
			if d := diff(got, want); d != "" {
				t.Fatalf("%s, pieces of %d: %s", name, block+1, d)
			}
		}
	}
}

// A time bound needs the base, which is unknown in pieces that are read concurrently with the
// header.
func TestChunkIndependenceOfTimes(t *testing.T) {
	second := strings.Replace(kinetoDoc(20), "1775078550000000000", "1775078560000000000", 1)
	for _, f := range []profile.Filter{
		{From: 1775078550000000000 + 1005_000, To: 1775078550000000000 + 1010_000},
		{From: 1775078550000000000 + 1015_000},
	} {
		data := []byte(kinetoDoc(20) + second)
		want := readWith(Options{Workers: 1, Filter: f}, parse.Usual, same, data)
		if n := len(want.Events); n < 5 || n > 30 {
			t.Fatalf("%d events", n)
		}
		for _, block := range []int{1, 64, 100, 1000, 3000} {
			got := readWith(Options{Workers: 2, Filter: f}, parse.Limits{Block: block, Record: 1 << 20}, same, data)
			if d := diff(got.everything(), want.everything()); d != "" {
				t.Errorf("pieces of %d: %s", block, d)
			}
		}
	}
}

// An event longer than any real one is lost, in whatever pieces it is read, and nothing after it
// is.
func TestRecordLimit(t *testing.T) {
	l := parse.Limits{Block: 64, Record: 1000}
	ok := func(name string) string { return `{"ph":"X","name":"` + name + `","pid":1,"tid":1,` + abs + `}` }
	long := ok(strings.Repeat("x", 2000))
	for _, data := range []string{`[` + ok("a") + `,` + long + `,` + ok("b") + `]`, `{"traceEvents":[` + ok("a") + `],"x":"` + strings.Repeat("x", 2000) + `","traceEvents":[` + ok("b") + `]}`} {
		for _, block := range []int{64, 900, 1 << 20} {
			l.Block = block
			r := readWith(Options{Workers: 2}, l, same, []byte(data))
			if r.names() != "a b" || !r.loss() {
				t.Errorf("pieces of %d: events %.100s; %v", block, r.names(), r.diags)
			}
		}
	}
	if r := readWith(Options{}, l, same, []byte(`[`+ok(strings.Repeat("x", 900))+`]`)); len(r.Events) != 1 || len(r.diags) > 0 {
		t.Errorf("a name just short of the limit: %v", r.diags)
	}
}

// Many workers read a realistic amount of data.
func TestWorkers(t *testing.T) {
	data := testinput.KinetoLike(20_000)
	want := readWith(Options{Workers: 1}, parse.Usual, same, data)
	if len(want.diags) > 0 || want.Total < 20_000 {
		t.Fatalf("%d events; %v", want.Total, want.diags)
	}
	for _, workers := range []int{2, 8} {
		got := readWith(Options{Workers: workers}, parse.Limits{Block: 1 << 16, Record: 64 << 20}, same, data)
		if d := diff(got.everything(), want.everything()); d != "" {
			t.Errorf("%d workers: %s", workers, d)
		}
	}
}

// kinetoDoc returns a document of n events e0, e1, ... in the layout of libkineto,
// a microsecond apart.
func kinetoDoc(n int) string {
	var b bytes.Buffer
	b.WriteString("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, \"name\": \"H100\"\n    }\n  ],\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1775078550000000000,\n  \"traceEvents\": [\n")
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
		}
		cat, pid := "cpu_op", 1251
		if i%3 == 2 {
			cat, pid = "kernel", 0
		}
		fmt.Fprintf(&b, "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"e%d\", \"pid\": %d, \"tid\": 7,\n    \"ts\": %d.%03d, \"dur\": 0.500,\n    \"args\": {\n      \"External id\": %d, \"correlation\": %d, \"Input Dims\": [[%d, 2], []], \"s\": \"a\\\"b\"\n    }\n  }",
			cat, i, pid, 1000+i, i, i, i, i)
	}
	b.WriteString("\n  ],\n  \"traceName\": \"/tmp/x.json\"\n}\n")
	return b.String()
}
