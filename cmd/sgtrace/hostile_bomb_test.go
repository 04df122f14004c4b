//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	otelBegin = `{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[{"traceId":"0000000000000000000000000000aa01","spanId":"00000000000001%02d","name":"stage%[1]d","kind":1,"startTimeUnixNano":"1787000000000010000","endTimeUnixNano":"1787000000000400000","attributes":[{"key":"k","value":`
	otelEnd   = `}],"status":{}}]}]}]}` + "\n"

	torchBegin = `{"schemaVersion":1,"distributedInfo":{"rank":0},"baseTimeNanoseconds":1775078550000000000,"traceEvents":[` + "\n"
	torchEvent = `{"ph":"X","cat":"kernel","name":"gemm%d","pid":0,"tid":7,"ts":%d.000,"dur":1.000,"args":{"stream":7,"correlation":%[1]d}}`
)

func otelSpan(i int) string {
	return fmt.Sprintf(otelBegin, i) + `{"stringValue":"v"}` + otelEnd
}

func torchSlice(i int) string { return fmt.Sprintf(torchEvent, i, 10*i) }

// bombMB returns how many megabytes a bomb expands to: the usual number, or $SGTRACE_BOMB_MB, such
// as 10000, which takes half an hour.
func bombMB(t testing.TB, usual int) int {
	text := os.Getenv("SGTRACE_BOMB_MB")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("SGTRACE_BOMB_MB: %v", err)
	}
	return max(n, usual)
}

// writeBomb writes a compressed file that contains head, megabytes of repeated units, and tail. The
// middle is compressed once and repeated.
func writeBomb(t testing.TB, path, head, unit, tail string, megabytes int) {
	t.Helper()
	const block = 2 << 20
	member := func(text string) []byte {
		var b bytes.Buffer
		z, err := io.WriteCloser(nil), error(nil)
		if strings.HasSuffix(path, ".zst") {
			z, err = zstd.NewWriter(&b)
		} else {
			z, err = gzip.NewWriterLevel(&b, gzip.BestSpeed)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(z, text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	middle := member(strings.Repeat(unit, block/len(unit)))
	parts := [][]byte{member(head)}
	for range megabytes << 20 / block {
		parts = append(parts, middle)
	}
	for _, p := range append(parts, member(tail)) {
		if _, err := f.Write(p); err != nil {
			t.Fatal(err)
		}
	}
}

// Small files that expand to far more than the memory limit are read to their end: data after the
// bomb is in the output, and the message says where the bomb began and how long it was. The smaller
// bombs consist of elements that could cost more than 20 bytes of memory per byte.
func TestBombs(t *testing.T) {
	otel := func(head, unit, tail string) [3]string {
		return [3]string{otelSpan(1) + head, unit, tail + otelSpan(2)}
	}
	torch := func(head, unit, tail string) [3]string {
		return [3]string{torchBegin + torchSlice(1) + "," + head, unit, tail + torchSlice(2) + "]}"}
	}
	behind := func(head, unit, tail string) [3]string { // after the events
		return [3]string{torchBegin + torchSlice(1) + "," + torchSlice(2) + "]" + head, unit, tail}
	}
	inSpan := fmt.Sprintf(otelBegin, 3)
	inName := `{"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":15.000,"dur":1.000,"name":"`
	for _, test := range []struct {
		name   string
		text   [3]string
		mb     int
		status int
		said   string
	}{
		{"otel spaces.gz", otel("", " ", ""), 224, exitOK, ""},
		{"otel spaces.zst", otel("", " ", ""), 224, exitOK, ""},
		{"otel string.gz", otel(inSpan+`{"stringValue":"`, "A", `"}`+otelEnd), 320, exitPartial, "a record that is longer than any real one; skipped 3355"},
		{"otel brackets.gz", otel("", "[", ""), 16, exitOK, ""},
		{"otel braces.gz", otel("", "{", ""), 16, exitPartial, "not valid JSON; skipped 16777"},
		{"otel nested value.gz", otel(inSpan, `{"arrayValue":{"values":[`, otelEnd), 16, exitPartial, "not valid JSON; skipped 16777"},
		{"otel attributes.gz", otel(strings.TrimSuffix(inSpan, `{"key":"k","value":`), `{"key":"k"},`, `{"key":"z"`+otelEnd), 66, exitPartial, "a record that is longer than any real one"},
		{"otel documents.gz", otel("", `{"resourceSpans":[]}`+"\n", ""), 16, exitOK, ""},
		{"otel cut documents.gz", otel("", `{"resourceSpans":[{`, ""), 16, exitPartial, "[otlp-truncated] ("},
		{"otel cut resources.gz", otel(`{"resourceSpans":[`, `{"scopeSpans":[{"spans":[`, ""), 16, exitPartial, "another record begins inside this one"},
		{"otel cut spans.gz", otel("", `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"`, ""), 32, exitPartial, "[otlp-truncated] ("},
		{"otel empty scopes.gz", otel(`{"resourceSpans":[{"scopeSpans":[`, `{"spans":[]},`, "{}]}]}\n"), 24, exitOK, ""},
		{"otel repeated resource.gz", otel(`{"resourceSpans":[{`, `"resource":{},`, "\"scopeSpans\":[]}]}\n"), 48, exitOK, ""},
		{"torch spaces.gz", torch("", " ", ""), 224, exitOK, ""},
		{"torch string.gz", torch(inName, "A", `"},`), 480, exitPartial, "this is longer than any real event; skipped 5033"},
		{"torch brackets.gz", torch("", "[", ","), 16, exitPartial, "skipped 16777"},
		{"torch braces.gz", torch("", "{", ","), 6, exitPartial, "skipped 6291"},
		{"torch nested args.gz", torch(inName+`q","args":`, `{"a":`, ","), 16, exitPartial, "this is nested too deeply; skipped 16777"},
		{"torch members.gz", behind(",", `"k":0,`, `"z":1}`), 8, exitPartial, "more data beside its events than any profiler writes"},
		{"torch member.gz", behind(`,"traceName":"`, "A", `"}`), 480, exitPartial, "skipped 5033"},
		{"torch documents.gz", behind("}\n", `{"traceEvents":[]}`+"\n", "[]"), 8, exitOK, ""},
		{"torch objects.gz", behind("}\n", "{}\n", "[]"), 6, exitOK, ""},
		{"spaces.gz", [3]string{"", " ", ""}, 224, exitFailed, "spaces.gz"},
		{"zeros.gz", [3]string{"", "\x00", ""}, 224, exitFailed, "zeros.gz"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if withRace() && test.mb > 16 {
				t.Skip("takes too long with the race detector")
			}
			limit := 256 // MB
			switch {
			case test.mb > 320:
				limit = 448 // an event is buffered until it is longer than any real one
			case test.mb < 256:
				limit = 192 // most take 100 to 145, depending on when the garbage collector runs
			}
			c := withData(limit)
			c.dir = t.TempDir()
			name := strings.ReplaceAll(test.name, " ", "-")
			size := bombMB(t, test.mb)
			writeBomb(t, filepath.Join(c.dir, name), test.text[0], test.text[1], test.text[2], size)
			if size != test.mb {
				test.said = "" // the byte count differs
			}
			before := snapshot(t, c.dir)
			r := c.run(t, "merge", name, "--layout", "ranks", "--view", "thread", "-o", "out.pftrace")
			r.check(t, test.status, test.said)
			if test.status == exitFailed {
				checkOnly(t, c.dir, before)
				return
			}
			checkOnly(t, c.dir, before, ".", "out.pftrace")
			data, err := os.ReadFile(filepath.Join(c.dir, "out.pftrace"))
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"gemm1", "gemm2"}
			if strings.HasPrefix(test.name, "otel") {
				want = []string{"stage1", "stage2"}
			}
			for _, w := range want {
				if !bytes.Contains(data, []byte(w)) {
					t.Errorf("the output lacks %s: what is around the bomb is lost", w)
				}
			}
		})
	}
}

// Gzip within gzip within gzip is a bomb, too, and is not unpacked.
func TestNestedCompression(t *testing.T) {
	dir := t.TempDir()
	data := []byte(otelSpan(1))
	for range 4 {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(data)
		z.Close()
		data = b.Bytes()
	}
	if err := os.WriteFile(filepath.Join(dir, "in.gz"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	child{dir: dir}.run(t, "report", "in.gz").check(t, exitFailed, "in.gz: compressed more than")
}

// Deeply nested lists in an attribute cost only that attribute, in protobuf as in JSON.
func TestNestedProtobuf(t *testing.T) {
	field := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	instant := func(number protowire.Number, ns uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), ns)
	}
	frame := func(id byte, value []byte) []byte {
		span := slices.Concat(field(1, bytes.Repeat([]byte{id}, 16)), field(2, bytes.Repeat([]byte{id}, 8)), field(5, fmt.Appendf(nil, "stage%d", id)),
			instant(7, 1787000000000000000), instant(8, 1787000000000100000), field(9, slices.Concat(field(1, []byte("k")), field(2, value))))
		message := field(1, field(2, field(2, span)))
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
	}
	// Nested array_values, built from the inside out: the head of each is collected in reverse.
	var reversed []byte
	for range 1_000_000 {
		for _, number := range []protowire.Number{1, 5} { // ArrayValue.values, AnyValue.array_value
			begin := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(len(reversed)))
			slices.Reverse(begin)
			reversed = append(reversed, begin...)
		}
	}
	slices.Reverse(reversed)
	c := withData(512)
	c.dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.dir, "in"), slices.Concat(frame(1, nil), frame(2, reversed), frame(3, nil)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := c.run(t, "report", "--by-stage", "in", "--format", "csv")
	r.check(t, exitPartial, "in+", "data loss")
	for _, stage := range []string{"stage1", "stage2", "stage3"} {
		if !strings.Contains(r.out, stage) {
			t.Errorf("%s is missing: %s", stage, r.out)
		}
	}
}
