package otlpjson

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// fuzzArgs spares the fuzzer from allocating an arena for every input.
var fuzzArgs = trace.NewArgs()

func readFuzzed(t *testing.T, l limits, wrap func(io.Reader) io.Reader, data string) reading {
	if fuzzArgs.Size() > 64<<20 {
		fuzzArgs = trace.NewArgs()
	}
	d := spantable.New(new(trace.Diags))
	d.Args = fuzzArgs
	return readInto(t, d, l, wrap, data)
}

// spanBegins matches the beginning of a span as a Collector writes it, and surelySpan enough to
// tell it from a log record, which is skipped inside an unknown list.
var (
	spanBegins = regexp.MustCompile(`\{"traceId":"[0-9a-f]{32}","spanId":"[0-9a-f]{16}",("parentSpanId":"[0-9a-f]{16}",|"flags":[0-9]+,)*"name":"`)
	surelySpan = regexp.MustCompile(spanBegins.String() + `[^"]*","kind":[0-9],"startTimeUnixNano":"`)
)

// mostMemory bounds the bytes needed to read an input three times and compare the results: blocks
// of all goroutines, plus some per byte of input.
func mostMemory(size int) uint64 { return 32<<20 + 2000*uint64(size) }

// checkFuzzed checks the invariants that hold for every input.
func checkFuzzed(t *testing.T, data string) reading {
	got := readFuzzed(t, limits{block: 4096, piece: 1 << 14, record: 1 << 20}, same, data)
	want := got.everything()
	if d := diff(readFuzzed(t, limits{block: 16, piece: 64, record: 1 << 20}, iotest.OneByteReader, data).everything(), want); d != "" {
		t.Fatalf("a byte at a time: %s", d)
	}
	// Read on one core; the other readings use all.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if d := diff(readFuzzed(t, limits{block: 200, piece: 400, record: 1 << 20}, iotest.HalfReader, data).everything(), want); d != "" {
		t.Fatalf("in pieces of 200 bytes: %s", d)
	}
	for i := range got.Len() {
		s := got.Span(i)
		if s.TraceHi|s.TraceLo == 0 || s.ID == 0 || s.Start <= 0 || s.End <= 0 {
			t.Fatalf("span %d has no identity or time: %+v", i, s)
		}
		if int(s.Line) > 1+strings.Count(data, "\n") {
			t.Fatalf("span %d is in line %d", i, s.Line)
		}
	}
	for _, d := range got.diags {
		if d.Pos.File != "f1" || d.Pos.Offset > int64(len(data)) || d.Pos.Line > int64(1+strings.Count(data, "\n")) || d.Count < 1 || d.Msg == "" {
			t.Fatalf("a diagnostic out of place: %+v", d)
		}
	}
	if f := got.Files[0]; f.Spans != got.Len() || f.Documents < 0 || f.Other < 0 || f.Bytes > int64(len(data)) {
		t.Fatalf("%+v", f)
	}
	outline(spantable.NewTree(got.Table), got.Table)
	return got
}

func FuzzRead(f *testing.F) {
	a, b := doc(span("a")), doc(rich("b"))
	for _, data := range []string{
		a, b, a + "\n" + a, "[" + a + "," + a + "]", indented(a), "\ufeff" + a,
		a[:200] + "\n" + a, a[:200] + a + a[200:], a[150:], a + "\nrubbish\n" + a, "{}[]{}",
		`{"resourceLogs":[{"a":1}]}` + a, strings.Replace(a, `"name"`, `name"`, 1),
		`{"resource_spans":[{"scope_spans":[{"spans":[{"span_id":"AAAAAAAAAAE=","kind":"SPAN_KIND_CLIENT","trace_id":"AAAAAAAAAAAAAAAAAAAAAQ==","start_time_unix_nano":1,"end_time_unix_nano":1.0e1}]}]}]}`,
		frames(packed(a, a)...), frames(protoMessages(f, a+b)...), frames(packed(a, a)...)[:90],
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		testinput.BoundMemory(t, mostMemory(len(in)), func() { checkJSON(t, string(in)) })
	})
}

// checkJSON checks the invariants, and compares with the reference reader if encoding/json accepts
// the input as OTLP.
func checkJSON(t *testing.T, data string) {
	got := checkFuzzed(t, data)
	otherSignals := slices.ContainsFunc(otherKeys, func(key string) bool { return strings.Contains(data, key) })
	if got.Files[0].Encoding == "json" && !otherSignals && !got.loss() {
		begins := spanBegins
		if strings.Contains(got.codes(), "otlp-unknown-key") {
			begins = surelySpan
		}
		if n := len(begins.FindAllString(data, -1)); got.Len() < n {
			t.Fatalf("%d spans begin, %d are there, nothing is reported: %v", n, got.Len(), got.diags)
		}
	}
	want, err := reference([]byte(data))
	if err != nil {
		return
	}
	if d := diff(got.inOrder(), want.inOrder()); d != "" {
		t.Fatalf("against encoding/json: %s%v", d, got.diags)
	}
	if got.loss() {
		t.Fatalf("nothing is lost, but reported: %v", got.diags)
	}
	if file := got.Files[0]; file.Documents != want.documents || file.Other != want.other {
		t.Fatalf("%+v, want %d documents and %d others", file, want.documents, want.other)
	}
}

// The fuzzer changes bytes; this moves parts of documents to wrong places, as in damaged files.
func TestPartsInWrongPlaces(t *testing.T) {
	rounds := 300
	if os.Getenv("SGTRACE_THOROUGH") != "" {
		rounds = 100_000
	}
	var sortedKeys any
	if err := json.Unmarshal([]byte(doc(span("i"), rich("j"))), &sortedKeys); err != nil {
		t.Fatal(err)
	}
	ij, _ := json.Marshal(sortedKeys)
	corpus := strings.Join(append(damageDocs(), indented(doc(span("h"))), string(ij),
		`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"00"}]}]}]}`), "\n")
	cuts := regexp.MustCompile(`[{}\[\],:"\n]`).FindAllStringIndex(corpus, -1)
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		at := func() int { // mostly at a token boundary
			if rng.IntN(4) == 0 {
				return rng.IntN(len(corpus))
			}
			return cuts[rng.IntN(len(cuts))][rng.IntN(2)]
		}
		var b strings.Builder
		for range 1 + rng.IntN(6) {
			from, to := at(), at()
			b.WriteString(corpus[min(from, to):max(from, to)])
			if rng.IntN(2) == 0 {
				b.WriteString([]string{"\n", "}", "]", "{", "[", `"`, ",", "]}]}]}\n", "\x00", `{"resourceSpans":[`}[rng.IntN(10)])
			}
		}
		if data := b.String(); !t.Run(fmt.Sprint(seed), func(t *testing.T) { checkJSON(t, data) }) {
			t.Logf("%q", data)
			return
		}
	}
}

// FuzzProto reads messages alone in a file, and between intact ones. Messages that Google's reader
// accepts must be read the same.
func FuzzProto(f *testing.F) {
	for _, m := range protoMessages(f, strings.Join(damageDocs(), "\n")) {
		f.Add([]byte(m))
		f.Add([]byte(m[:len(m)-20]))
	}
	sound := frames(protoMessages(f, doc(span("first")))...)
	last := frames(protoMessages(f, doc(span("last")))...)
	f.Fuzz(func(t *testing.T, in []byte) {
		testinput.BoundMemory(t, 4*mostMemory(len(in)), func() {
			message := string(in)
			checkProto(t, message, checkFuzzed(t, frames(message)))
			checkFuzzed(t, message)
			if len(message) > 0 {
				checkBetween(t, sound, frames(message), last)
			}
		})
	})
}

// checkBetween reads a frame of any kind between two intact ones, "first" and "last".
func checkBetween(t *testing.T, sound, frame, last string) {
	got := checkFuzzed(t, sound+frame+last)
	names := got.names()
	if !strings.HasPrefix(names, "first") {
		t.Fatalf("a sound frame is lost: %s", names)
	}
	if !strings.HasSuffix(names, "last") && !(got.loss() && claimsAll(frame+last)) {
		t.Fatalf("a sound frame is lost: %s %v", names, got.diags)
	}
}

// checkProto compares the reading of a message with that of Google's reader, if it accepts the
// message as OTLP.
func checkProto(t *testing.T, message string, got reading) {
	text, err := jsonOf(message)
	if err != nil || got.Files[0].Encoding != protoFrames.String() {
		return
	}
	want, err := reference(text)
	if err != nil {
		return
	}
	if d := diff(got.inOrder(), want.inOrder()); d != "" || got.loss() {
		t.Fatalf("against Google's reader: %s%v\n%s", d, got.diags, text)
	}
}

// claimsAll reports whether any four bytes of data, as the length of a frame, say that it ends
// exactly at the end of data. Such a length is believed, and swallows the frames inside it.
func claimsAll(data string) bool {
	for i := range len(data) - lengthSize {
		if int(binary.BigEndian.Uint32([]byte(data[i:]))) == len(data)-i-lengthSize {
			return i < len(data)-100 // the length of the last frame is exempt
		}
	}
	return false
}
