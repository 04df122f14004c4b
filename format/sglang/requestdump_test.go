package sglang

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// requestSecret stands for prompts and keys: it is in everything that must not be kept.
const requestSecret = "CANARY-7f3a of a prompt"

// A pickler writes pickles like Python's, for dicts, lists, texts, numbers, and dataclass objects.
type pickler struct{ bytes.Buffer }

// An object is a dataclass instance.
type object struct {
	module, class string
	state         []any // alternating keys and values
}

type dict []any

type tuple []any

func (p *pickler) value(v any) {
	switch v := v.(type) {
	case nil:
		p.WriteByte('N')
	case int:
		p.WriteByte('J')
		p.Write(binary.LittleEndian.AppendUint32(nil, uint32(v)))
	case float64:
		p.WriteByte('G')
		p.Write(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
	case string:
		p.WriteByte('X')
		p.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(v))))
		p.WriteString(v)
		p.WriteByte(0x94) // MEMOIZE
	case dict:
		p.WriteString("}\x94")
		if len(v) > 0 {
			p.WriteByte('(')
			for _, x := range v {
				p.value(x)
			}
			p.WriteByte('u')
		}
	case []any:
		p.WriteString("]\x94(")
		for _, x := range v {
			p.value(x)
		}
		p.WriteByte('e')
	case tuple:
		p.WriteByte('(')
		for _, x := range v {
			p.value(x)
		}
		p.WriteString("t\x94")
	case object:
		p.value(v.module)
		p.value(v.class)
		p.WriteString("\x93\x94)\x81\x94")
		p.value(dict(v.state))
		p.WriteByte('b')
	}
}

func pickled(v any) []byte {
	var p pickler
	p.WriteString("\x80\x04")
	p.value(v)
	p.WriteByte('.')
	return p.Bytes()
}

func asks(id string, tokens, room int) object {
	ids := make([]any, tokens)
	for i := range ids {
		ids[i] = i
	}
	return object{"sglang.srt.managers.io_struct", "GenerateReqInput", []any{"text", strings.Repeat(requestSecret, 40), "input_ids", ids, "sampling_params", dict{"stop", requestSecret}, "rid", id, "stream", 1, "bootstrap_room", room}}
}

func answer(id, finish string, prompt, completion int) dict {
	reason := any(dict{"type", finish, "message", requestSecret})
	if finish == "" {
		reason = nil
	}
	return dict{"text", requestSecret, "output_ids", []any{1, 2, 3}, "meta_info", dict{"id", id, "finish_reason", reason, "prompt_tokens", prompt, "completion_tokens", completion, "cached_tokens", 5}}
}

// requestDump returns a crash dump with two finished requests, an aborted one, and two in flight.
func requestDump() []byte {
	requests := []any{
		tuple{asks("r0", 100, 7), answer("r0", "stop", 100, 20), 1787000000.125, 1787000002.625},
		tuple{asks("r1", 100, 8), answer("r1", "length", 100, 30), 1787000001.0, 1787000003.0},
		tuple{asks("r2", 10, 9), answer("r2", "abort", 10, 1), 1787000001.0, 1787000001.5},
		tuple{asks("r3", 5000, 10), dict{}, 1786999710.0, 1787000010.0},
		tuple{asks("r4", 2, 11), answer("r4", "", 2, 7), 1786999995.0, 1787000010.0},
	}
	return pickled(dict{"server_args", object{"sglang.srt.server_args", "ServerArgs", []any{"api_key", requestSecret, "disaggregation_mode", "decode"}}, "requests", requests, "launch_command", "sglang --api-key " + requestSecret})
}

// readRequests reads a dump, and returns the spans made from it.
func readRequests(t testing.TB, data []byte, pipe bool) (*spantable.Table, *series.Set, error) {
	t.Helper()
	diags := &trace.Diags{}
	spans := spantable.New(diags)
	set := series.New(spans.Syms, diags)
	records := spantable.NewRequestRecords(set)
	in := &format.Input{Name: "node3/crash_dump_2026.pkl", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	if !pipe {
		in.Path = filepath.Join(t.TempDir(), "crash_dump_2026.pkl")
		if err := os.WriteFile(in.Path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		in.Open = func() (io.ReadCloser, error) { return os.Open(in.Path) }
	}
	_, err := RequestDump.Index(in, &format.Options{Syms: spans.Syms, Args: spans.Args, Diags: diags, Spans: spans, Series: set, Records: records})
	set.Finish(series.Known{})
	records.Emit(spans)
	return spans, set, err
}

func TestCrashDump(t *testing.T) {
	if !isRequestDump(requestDump()) {
		t.Error("not recognized")
	}
	for _, pipe := range []bool{false, true} {
		spans, set, err := readRequests(t, requestDump(), pipe)
		if err != nil || spans.Len() != 10 || len(set.Instants) != 1 {
			t.Fatalf("%d spans, %d instants, %v", spans.Len(), len(set.Instants), err)
		}
		x := set.Instants[0]
		if text := set.Syms.Name(x.Text); text != "crashed with 2 requests in flight, of 5002 prompt tokens and 7 tokens of answers, the oldest 300.0 s old," || x.Time != 1787000010e9 || x.Count != 2 {
			t.Errorf("%s, %d, %d", text, x.Time, x.Count)
		}
		if s := set.Servers[set.Places[x.Place].Server]; s.Host != "node3" || s.Role != "decode" || s.Engine != "SGLang" {
			t.Errorf("%+v", s)
		}
		for _, name := range spans.Syms.Names() {
			if strings.Contains(name, "CANARY") {
				t.Errorf("keeps %q", name)
			}
		}
		if at := spans.Span(0).Start; at != 1787000000_125000000 && at != 1786999710e9 {
			t.Errorf("starts at %d", at)
		}
	}
}

// Damaged dumps are used up to the damage, and no prompt is ever kept.
func TestRequestMutants(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	whole := requestDump()
	for range 60 {
		b := append([]byte(nil), whole[:1+r.IntN(len(whole))]...)
		for range r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.IntN(256))
		}
		spans, _, _ := readRequests(t, b, true)
		for _, name := range spans.Syms.Names() {
			if strings.Contains(name, "CANARY") {
				t.Fatalf("keeps %q", name)
			}
		}
	}
}

func FuzzRequestDump(f *testing.F) {
	f.Add(requestDump())
	f.Fuzz(func(t *testing.T, data []byte) { readRequests(t, data, true) })
}
