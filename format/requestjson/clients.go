package requestjson

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Clients is the output of load generators and frontends about requests: one JSON record per line. AIPerf records
// requests as a client saw them, Dynamo as its frontend handled them; bench_serving of SGLang and vLLM has one line for a
// whole run, and so have reports of GuideLLM, inference-perf, AIPerf, and GenAI-Perf, each of which is one JSON document.
//
// # What is odd
//
//   - AIPerf may write a key twice in one object; the last one counts. Its first versions called
//     time_to_first_token "ttft", and request_start_ns "timestamp_ns".
//   - Dynamo's times are whole milliseconds. Records may be wrapped in {"timestamp":..,"event":{..}}; those of type
//     request_payload contain prompts, and are ignored.
//   - bench_serving has no times of day. Its server_info contains the server's keys, and generated_texts
//     the answers: neither is read. Without --output-details, or vLLM's --save-detailed, it only has
//     the percentiles that it printed.
var Clients = &format.Format{
	Name:     "client records",
	Noun:     "file of client records",
	Doc:      "records of AIPerf (profile_export.jsonl), Dynamo (dynamo.request.trace.v1), and bench_serving of SGLang and vLLM; reports of runs of GuideLLM, inference-perf, AIPerf, and GenAI-Perf",
	For:      "'sgtrace report'",
	Sniff:    func(head []byte) bool { return kindOf(head) != nil },
	Index:    indexClients,
	Requests: true,
	Series:   true,
	Text:     true,
}

// A clientKind is a program that writes such files.
type clientKind struct {
	encoding string
	is       func(head []byte) bool
	line     func(*clientReader, []byte) bool // parses a line, and reports whether it is a record
}

func has(head []byte, all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !bytes.Contains(head, []byte(s)) })
}

var kinds = []clientKind{
	{"Dynamo request trace", func(b []byte) bool { return has(b[:min(len(b), 8<<10)], `"dynamo.request.trace.v1"`) }, (*clientReader).dynamo},
	{"AIPerf records", func(b []byte) bool {
		return has(b, `"metadata"`, `"metrics"`, `"worker_id"`) && (has(b, `"request_start_ns"`) || has(b, `"timestamp_ns"`))
	}, (*clientReader).aiperf},
	{"bench_serving results", func(b []byte) bool {
		return has(b, `"backend"`, `"request_rate"`) && (has(b, `"dataset_name"`) || has(b, `"num_prompts"`)) || has(b, `"request_rate"`, `"median_ttft_ms"`, `"completed"`)
	}, (*clientReader).bench},
	{"GuideLLM report", func(b []byte) bool {
		return has(b, `"guidellm_version"`) || has(b, `"benchmarks"`, `"generative_benchmark"`)
	}, (*clientReader).guideLLM},
	{"inference-perf report", func(b []byte) bool { return has(b, `"load_summary"`, `"successes"`, `"failures"`) }, (*clientReader).inferencePerf},
	{"AIPerf summary", func(b []byte) bool { return has(b, `"request_throughput"`, `"requests/sec"`, `"request_latency"`) }, (*clientReader).genAIPerf},
}

// kindOf returns the program that wrote a file with this head; nil if it is unknown.
func kindOf(head []byte) *clientKind {
	head = bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n")
	if len(head) == 0 || head[0] != '{' {
		return nil
	}
	for i := range kinds {
		if kinds[i].is(head) {
			return &kinds[i]
		}
	}
	return nil
}

// A clientReader reads one file.
type clientReader struct {
	f    *series.Filler
	rows *spantable.RequestFiller
	line int // last line read
	at   int // line in which the record begins
}

// longestLine is the size of the longest record: with the answers of thousands of requests it takes hundreds of MB.
const longestLine = 1 << 30

// indexClients reads a file.
func indexClients(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	b := bufio.NewReaderSize(content, 64<<10)
	head, _ := b.Peek(64 << 10)
	k := kindOf(head)
	if k == nil {
		return nil, errors.Join(errors.New("no record in it"), content.Close())
	}
	r := &clientReader{f: opt.Series.Fill(in.Name, k.encoding)}
	r.rows = opt.Records.Fill(r.f)
	read, bad := 0, 0
	var text []byte
	for err == nil {
		text, err = r.next(b, text[:0])
		r.f.Source().Bytes += int64(len(text))
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if k.line(r, text) {
			read++
		} else {
			bad++
		}
	}
	src := r.f.Source()
	src.Lines, src.Read, src.Other = read+bad, read, bad
	if bad > 0 {
		opt.Diags.Add(trace.RecordBad.Of(in.Name, bad))
	}
	if !errors.Is(err, io.EOF) {
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	return &format.Source{}, content.Close()
}

var errLong = errors.New("a line of more than 1 GiB")

// next reads a record after the content of b: a line, or several if it is indented.
func (r *clientReader) next(in *bufio.Reader, b []byte) ([]byte, error) {
	b, err := r.nextLine(in, b)
	r.at = r.line
	if head := bytes.TrimSpace(b); len(head) == 0 || head[0] != '{' {
		return b, err
	}
	var open depth
	for checked := 0; err == nil; {
		if open.add(b[checked:]); open.n <= 0 {
			return b, nil
		}
		checked = len(b)
		if more, peeked := in.Peek(1); peeked != nil || more[0] == '{' { // a record that was cut off
			return b, nil
		}
		b, err = r.nextLine(in, b)
	}
	return b, err
}

// A depth counts open brackets.
type depth struct {
	n                 int
	inString, escaped bool
}

func (d *depth) add(b []byte) {
	for _, c := range b {
		switch {
		case d.escaped:
			d.escaped = false
		case d.inString:
			d.escaped, d.inString = c == '\\', c != '"'
		case c == '"':
			d.inString = true
		case c == '{' || c == '[':
			d.n++
		case c == '}' || c == ']':
			d.n--
		}
	}
}

// nextLine reads a line after the content of b.
func (r *clientReader) nextLine(in *bufio.Reader, b []byte) ([]byte, error) {
	r.line++
	for {
		part, err := in.ReadSlice('\n')
		if b = append(b, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return b, err
		}
		if len(b) > longestLine {
			return b[:0], errLong
		}
	}
}
