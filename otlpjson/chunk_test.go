package otlpjson

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// tiny has pieces of a few spans, so that every kind of boundary occurs.
var tiny = limits{block: 64, piece: 512, record: 1 << 20}

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
	name   string
	limits limits
	wrap   func(io.Reader) io.Reader
}{
	{"a byte at a time", usual, iotest.OneByteReader},
	{"data with the error", usual, iotest.DataErrReader},
	{"halves", usual, iotest.HalfReader},
	{"random sizes", usual, func(r io.Reader) io.Reader { return &ragged{r, rand.New(rand.NewPCG(1, 2))} }},
	{"tiny pieces", tiny, same},
	{"tiny pieces, a byte at a time", tiny, iotest.OneByteReader},
	{"streamed from the first byte", limits{block: 64, piece: 64, record: 1 << 20}, same},
	{"small pieces, large documents", limits{block: 4096, piece: 8192, record: 1 << 20}, iotest.HalfReader},
}

// chunkInputs are inputs with everything that a parser can meet, including damage.
func chunkInputs(t testing.TB) map[string]string {
	ab, c := doc(span("a"), rich("b")), doc(rich("c"), span("d"))
	lines := strings.Repeat(ab+"\n"+c+"\r\n\n", 4)
	many := make([]string, 30)
	for i := range many {
		many[i] = rich(fmt.Sprint("s", i))
	}
	return map[string]string{
		"lines":             lines,
		"byte order mark":   "\ufeff" + lines,
		"indented":          indented(ab, c, ab),
		"array":             "[" + ab + ",\n" + c + "]",
		"one long document": doc(many...),
		"long line between": lines + doc(many...) + "\n" + lines,
		"other signals":     ab + "\n" + `{"resourceLogs":[{"x":[` + strings.Repeat(`{"a":"}]"},`, 200) + `{}]}]}` + "\n" + c,
		"unknown members":   ab[:len(ab)-1] + `,"novel":[` + strings.Repeat(`{"a":"}]"},`, 200) + `{}]}` + "\n" + c,
		"white space":       strings.Repeat("\n", 500) + ab + strings.Repeat(" ", 500) + c,
		"cut off":           lines + ab[:len(ab)-100],
		"cut off, good":     ab[:len(ab)-100] + "\n" + lines,
		"cut off in logs":   `{"resourceLogs":[{"a":[` + "\n" + lines,
		"head cut off":      ab[300:] + "\n" + lines,
		"broken line":       lines + strings.Replace(ab, `"name"`, `"name`, 1) + "\n" + lines,
		"broken first span": lines + strings.Replace(ab, `"kind":1`, `"kind":}`, 1) + "\n" + lines,
		"invalid span":      lines + strings.Replace(ab, `"1787`, `"z787`, 1) + "\n" + lines,
		"document inside":   doc(span("a"), ab, span("z")) + "\n" + lines,
		"rubbish":           "rubbish\n" + ab + "{{{{" + c + "]]]]\x00\x00\x00" + ab + `"` + "\n" + lines,
		"zstd frames":       frames(packed(ab, c, doc(many...), lines)...),
		"protobuf frames":   frames(protoMessages(t, lines)...),
		"damaged frames":    frames(packed(ab, c)...) + "\x00\x00\x00" + frames(packed(c, ab[:400])...) + "\x00",
		"a frame cut off":   frames(protoMessages(t, lines)...)[:2000],
	}
}

// How an input is split into reads and pieces changes nothing: no span, no position, no diagnostic.
func TestChunkIndependence(t *testing.T) {
	for name, data := range chunkInputs(t) {
		t.Run(name, func(t *testing.T) {
			want := read(t, data)
			for _, c := range chunkings {
				if d := diff(readWith(t, c.limits, c.wrap, data).everything(), want.everything()); d != "" {
					t.Errorf("%s: %s", c.name, d)
				}
			}
		})
	}
}

// Documents of every length straddle block boundaries in every way.
func TestEveryBlockSize(t *testing.T) {
	data := doc(span("a")) + "\n" + doc(rich("b"), span("c")) + "\n" + doc(span("d")) + "\n" + doc(span("e"))
	want := read(t, data).everything()
	for block := 16; block < 700; block++ {
		got := readWith(t, limits{block: block, piece: 4 * block, record: 1 << 20}, same, data)
		if d := diff(got.everything(), want); d != "" {
			t.Errorf("blocks of %d: %s", block, d)
		}
	}
}

// The number of cores changes nothing, either.
func TestCoreIndependence(t *testing.T) {
	data := simulated(t, 40)
	data += doc(span("a"))[:200] + "\n" + data // damage, to have diagnostics
	l := limits{block: 1 << 14, piece: 1 << 16, record: 1 << 20}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := readWith(t, l, same, data)
	if len(want.diags) == 0 {
		t.Error("no diagnostics")
	}
	for _, cores := range []int{2, 3, 8} {
		runtime.GOMAXPROCS(cores)
		got := readWith(t, l, same, data)
		if d := diff(got.everything(), want.everything()); d != "" {
			t.Errorf("%d cores: %s", cores, d)
		}
	}
}

// A 50 MB document on one line, as a Collector without a batch limit writes it, is read with the
// resource before or after the spans.
func TestLongDocument(t *testing.T) {
	body := simulated(t, 40)
	body = strings.ReplaceAll(strings.TrimSpace(body), "]}\n{\"resourceSpans\":[", ",")
	body = strings.TrimSuffix(strings.TrimPrefix(body, `{"resourceSpans":[`), `]}`)
	var once int
	{
		once = read(t, `{"resourceSpans":[`+body+`]}`).Len()
	}
	times := 50<<20/len(body) + 1
	data := `{"resourceSpans":[` + strings.Repeat(body+",", times) + strings.Replace(resourceSpans("last", span("last")), `{"resource"`, `{"schemaUrl":"","resource"`, 1) + "]}\n" + doc(span("z"))
	got := read(t, data)
	if got.Len() != times*once+2 || got.Files[0].Documents != 2 || len(got.diags) > 0 {
		t.Errorf("%d spans, want %d; %+v %v", got.Len(), times*once+2, got.Files[0], got.diags)
	}
	if i := got.Len() - 1; got.Span(i).Line != 2 || got.Syms.Name(got.Resource(got.Span(i-1)).Instance) != "last" {
		t.Errorf("the last spans are %s", got.inOrder()[i-1:])
	}
}
