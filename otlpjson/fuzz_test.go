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

// fuzzArgs saves the fuzzer from making an arena for every input.
var fuzzArgs = trace.NewArgs()

func readFuzzed(t *testing.T, l limits, wrap func(io.Reader) io.Reader, data string) reading {
	if fuzzArgs.Size() > 64<<20 {
		fuzzArgs = trace.NewArgs()
	}
	d := spantable.New(new(trace.Diags))
	d.Args = fuzzArgs
	return readInto(t, d, l, wrap, data)
}

// A span as a Collector begins it, and up to what tells it from a log record, which is
// passed over in a list that nobody knows.
var (
	spanBegins = regexp.MustCompile(`\{"traceId":"[0-9a-f]{32}","spanId":"[0-9a-f]{16}",("parentSpanId":"[0-9a-f]{16}",|"flags":[0-9]+,)*"name":"`)
	surelySpan = regexp.MustCompile(spanBegins.String() + `[^"]*","kind":[0-9],"startTimeUnixNano":"`)
)

// mostMemory is how many bytes it takes to read an input three times and compare what was
// read: blocks of all goroutines, and some for each byte of the input.
func mostMemory(size int) uint64 { return 32<<20 + 2000*uint64(size) }

// checkFuzzed checks what holds for every input.
func checkFuzzed(t *testing.T, data string) reading {
	got := readFuzzed(t, limits{block: 4096, piece: 1 << 14, record: 1 << 20}, same, data)
	want := got.everything()
	if d := diff(readFuzzed(t, limits{block: 16, piece: 64, record: 1 << 20}, iotest.OneByteReader, data).everything(), want); d != "" {
		t.Fatalf("a byte at a time: %s", d)
	}
	// On one core, while the others are on all.
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

// checkJSON checks what holds for every input, and more if encoding/json takes
// it for OTLP.
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

// The fuzzer changes bytes; this puts parts of documents in wrong places, which
// is what damaged files look like.
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
		at := func() int { // mostly at a token
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

// FuzzProto reads messages as the only one of a file, and between sound ones. What Google's
// reader takes is read the same.
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

// checkBetween reads a frame of whatever kind between two sound ones, "first" and "last".
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

// checkProto compares what was read of a message with what Google's reader makes of it, if
// that is OTLP.
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

// claimsAll reports whether somewhere in data are four bytes that say, as the length of a
// frame, that it ends where data does: such a one is believed, and takes what is within
// it along.
func claimsAll(data string) bool {
	for i := range len(data) - lengthSize {
		if int(binary.BigEndian.Uint32([]byte(data[i:]))) == len(data)-i-lengthSize {
			return i < len(data)-100 // the last frame's own length is none
		}
	}
	return false
}
