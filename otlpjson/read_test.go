package otlpjson

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// An error of the input itself is returned, after the spans before it.
func TestReadError(t *testing.T) {
	disk := errors.New("disk on fire")
	var diags trace.Diags
	d := spantable.New(&diags)
	if err := Read(d, "x.json", iotest.ErrReader(disk)); !errors.Is(err, disk) || !strings.Contains(err.Error(), "x.json") {
		t.Errorf("an input that cannot be read: %v", err)
	}
	data := doc(span("a"), span("b")) + "\n" + doc(span("c"), span("d"))
	for _, c := range []struct {
		cut          int
		spans, codes string
	}{
		{len(data), "a b c d", "input-damaged@f1+%d"},
		{len(data) - 50, "a b c", "input-damaged@f1+%d otlp-truncated@f1:2"},
	} {
		for name, fail := range map[string]func(r io.Reader) io.Reader{
			"in order": func(r io.Reader) io.Reader {
				return io.MultiReader(io.LimitReader(r, int64(c.cut)), iotest.ErrReader(disk))
			},
			"anywhere": func(r io.Reader) io.Reader {
				return &brokenFile{r, r.(io.ReaderAt), int64(c.cut), disk}
			},
		} {
			for _, l := range []limits{usual, {block: 1 << 10, piece: 1 << 12, record: 1 << 20}, tiny} { // with tiny, the input is streamed
				got := readWith(t, l, fail, data)
				if want := fmt.Sprintf(c.codes, c.cut); got.names() != c.spans || got.codes() != want || !strings.Contains(got.diags[0].Msg, "disk on fire") {
					t.Errorf("read %s in blocks of %d, failed after %d bytes: spans %s, %v; want %s, %s", name, l.block, c.cut, got.names(), got.diags, c.spans, want)
				}
			}
		}
	}
}

// A brokenFile fails after a certain number of bytes.
type brokenFile struct {
	io.Reader
	at  io.ReaderAt
	cut int64
	err error
}

func (f *brokenFile) ReadAt(p []byte, offset int64) (n int, err error) {
	there := p[:min(int64(len(p)), max(0, f.cut-offset))]
	if n, err = f.at.ReadAt(there, offset); err == nil && n < len(p) {
		err = f.err
	}
	return n, err
}

func TestEmptyInput(t *testing.T) {
	for _, data := range []string{"", "\n", "\ufeff", "{}", "[]", " \r\n\t "} {
		if got := read(t, data); got.Len() != 0 || len(got.diags) > 0 {
			t.Errorf("%q: %d spans, %v", data, got.Len(), got.diags)
		}
	}
}

// Several files form one dump: they share resources and names, and each span knows its file.
func TestSeveralFiles(t *testing.T) {
	got := read(t, doc(span("a")), "\n"+doc(span("b")), frames(packed(doc(span("c")))...), doc(span("a")))
	if got.names() != "a b c a" || len(got.Resources) != 2 || len(got.Origins) != 1+2*4 {
		t.Errorf("spans %s, %d resources, %d origins", got.names(), len(got.Resources), len(got.Origins))
	}
	for i, want := range []string{"f1:1", "f2:2", "f3+0", "f4:1"} {
		if pos := got.Pos(i).String(); pos != want {
			t.Errorf("span %d is at %s, want %s", i, pos, want)
		}
	}
	if got.EventCount() != 0 || got.Table.Span(0).Dur() != 256 {
		t.Errorf("%d events, a lasts %d", got.EventCount(), got.Table.Span(0).Dur())
	}
}

// repeated returns a reader that repeats text, n bytes in all.
func repeated(text string, n int64) io.Reader {
	return io.LimitReader(&repeater{text: text}, n)
}

type repeater struct {
	text string
	at   int
}

func (r *repeater) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], r.text[r.at:])
		n += m
		r.at = (r.at + m) % len(r.text)
	}
	return n, nil
}

// Memory depends on the number of spans, not on the length of skipped data.
func TestBoundedMemory(t *testing.T) {
	a, d := doc(span("a"))+"\n", "\n"+doc(span("d"))
	for _, c := range []struct {
		name, before, repeat, after, spans string
		size, most                         int64 // bytes repeated, bytes allocated
	}{
		{"a string", a + `{"resourceSpans":[{"scopeSpans":[{"spans":[` + span("b") + `,{"name":"`, "x", `"},` + span("c") + `]}]}]}` + d, "a b c d", 70 << 20, 400 << 20},
		{"logs", a + `{"resourceLogs":[`, `{"body":{"stringValue":"some text {[\""}},`, `{}]}` + d, "a d", 14 << 20, 24 << 20},
		{"an unknown member", a + `{"novel":[`, `{"body":["some text {[\""]},`, `{}]}` + d, "a d", 14 << 20, 24 << 20},
		{"rubbish", a, "rubbish\n", d, "a d", 14 << 20, 24 << 20},
		{"zeros", a, "\x00", d, "a d", 14 << 20, 24 << 20},
		{"white space", a, "\n", d, "a d", 14 << 20, 24 << 20},
		{"empty documents", a, "{}", d, "a d", 14 << 20, 24 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := c.size / int64(len(c.repeat)) * int64(len(c.repeat))
			dump := spantable.New(new(trace.Diags))
			used := testinput.AllocatedBy(func() {
				if err := Read(dump, "f1", io.MultiReader(strings.NewReader(c.before), repeated(c.repeat, n), strings.NewReader(c.after))); err != nil {
					t.Fatal(err)
				}
			})
			got := reading{dump, dump.Diags.All()}
			if got.names() != c.spans {
				t.Errorf("spans %s, want %s; %v", got.names(), c.spans, got.diags)
			}
			if used > c.most {
				t.Errorf("%d MB were allocated, want %d at most", used>>20, c.most>>20)
			}
		})
	}
}
