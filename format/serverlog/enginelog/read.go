// Package enginelog reads logs of servers that report each request when it ends, and little else: TGI, TEI, and llama.cpp.
package enginelog

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is the log of such a server: each reported request becomes a request.
//
// # What is odd
//
//   - TGI and TEI write the durations of a request into the span of a line, as text or as JSON (--json-output), when its answer is complete: in any
//     unit, "686.203µs". The number of tokens follows from the time per token.
//   - TGI measures on the router: its inference time is the prefill and all tokens.
//   - llama.cpp writes three lines, for the prompt, for the answer, and for both. They don't include the wait for a slot. Until 2024-06,
//     each was JSON.
//   - llama.cpp's lines have no stamps, or, since 2026, the time since the start: then we assume that the last line is as old as the file. Log
//     collectors may add stamps.
//   - "prompt eval" counts the tokens that were computed; "new prompt" all of them.
var Format = &format.Format{
	Name:     "request log",
	Noun:     "request log",
	Doc:      "logs of TGI, TEI, and llama.cpp, which tell of each request how long it took",
	For:      "'sgtrace report'",
	Sniff:    sniff,
	Index:    index,
	Requests: true,
	Series:   true,
	Text:     true,
}

// signs are in the lines of these servers only.
var signs = [...]string{"text_generation_router", "text_generation_launcher", "text_embeddings_router", "slot print_timing:", "slot launch_slot_:", "slot update_slots:", "srv  update_slots:",
	"srv    load_model:", "slot get_availabl:", `"function":"print_timings"`, "llama_model_loader: ", "llama_context: ", "srv          init:", "main: server is listening on http", "GGML_ASSERT", "ggml_cuda_init: ", "ggml_vulkan: ", "ggml_backend_", "srv  params_from_: ", "llama-server(+0x"}

func sniff(head []byte) bool {
	text := logline.New().Bare(bytes.TrimSpace(head[:min(len(head), 4<<10)]))
	if len(text) == 0 || bytes.HasPrefix(text, []byte("[")) && !bytes.ContainsAny(text[:min(len(text), 40)], "] ") {
		return false
	}
	for _, sign := range signs {
		if bytes.Contains(head, []byte(sign)) {
			return true
		}
	}
	return false
}

// A reader reads one file.
type reader struct {
	f      *series.Filler
	rows   *spantable.RequestFiller
	around *logline.Unwrapper
	name   string
	line   int64
	read   int
	llama  llama
	base   map[string]int32 // servers, by the prefix of their lines
	now    trace.Time       // last stamp
	local  bool             // stamps have no zone
	unit   logline.Kernel   // for stamps of the journal
	up     trace.Time       // time since the start at the last line; 0 is unknown
	// aged are requests with such times: the time at which the file was written converts them.
	aged       []spantable.RequestRecord
	untimed    int
	complaints errortext.Complaints
	told       map[int32]string // last failure of ggml since a server's model was loaded
}

func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	r := &reader{f: opt.Series.Fill(in.Name, "request log"), around: logline.New(), name: strings.TrimSuffix(in.Name, ".log"), unit: logline.Kernel{Path: in.Path}, base: map[string]int32{}, complaints: errortext.NewComplaints(opt.Series), told: map[int32]string{},
		llama: llama{now: newEnded(), prompts: map[string]int64{}}}
	r.rows = opt.Records.Fill(r.f)
	src := r.f.Source()
	src.Bytes, err = logline.Read(content, in.Name, opt.Diags, func(b []byte, n int64) {
		r.line = n
		r.f.Line(n)
		r.take(r.around.Bare(b))
	})
	shift := trace.Time(logline.ModTime(in.Path).UnixNano()) - r.up
	if len(r.aged) > 0 {
		opt.Diags.Add(trace.LogUptimes.Of(in.Name, logline.ModTime(in.Path).UTC().Format(time.DateTime)))
	}
	for i := range r.aged {
		x := &r.aged[i]
		x.Start, x.End, x.First = x.Start+shift, x.End+shift, x.First+shift
		r.rows.Add(*x)
		r.f.Saw(x.End)
	}
	r.complaints.Tell(r.f)
	if r.untimed > 0 {
		opt.Diags.Add(trace.LogNoTime.Of(in.Name, r.untimed))
	}
	src.Lines, src.Read = int(r.line), r.read
	if r.read == 0 {
		opt.Diags.Add(trace.LogEmpty.Of(in.Name, r.line))
	}
	return &format.Source{}, err
}

func (r *reader) take(b []byte) {
	w := r.around.Unwrap(b)
	rest := bytes.TrimSpace(r.around.Rest(b))
	level, said := byte(0), rest
	var complaint []byte // if it is not what was said
	switch at, n, ok := r.around.Outer.Zoned(rest); {
	case ok:
		r.stamped(at)
		said = bytes.TrimLeft(rest[n:], " ")
	case w.At != 0:
		r.stamped(w.At)
	case r.ofUnit(b):
	case bytes.Contains(rest, ofSeconds):
		if s, ok := logline.After(rest, string(ofSeconds)); ok && s > 1e9 && s < 1e11 {
			r.stamped(trace.Time(s * 1e9))
		}
	case len(rest) > 0 && rest[0] == '{':
		if x, ok := logline.RecordOf(rest); ok {
			if at, _, ok := r.around.Outer.Zoned(x.Time); ok {
				r.stamped(at)
			} else if v, ok := logline.Decimal(x.Time, 1); ok && v > 1e9 && v < 1e11 { // llama.cpp until 2024, in whole seconds
				r.stamped(trace.Time(v * 1e9))
			}
			if len(x.Level) > 0 {
				level = x.Level[0]
			}
			complaint = jsonscan.Unescape(nil, x.Message)
		}
	}
	if l := logline.LevelOf(said); l != nil {
		level = l[0]
	}
	if up, l, after := sinceStart(said); l != 0 {
		r.up, level, said = up, l, after
	}
	server := r.server(w)
	if e, ok := ofHuggingFace(said); ok && level != 'E' {
		r.add(&e, server)
	} else if e, ok := r.llama.take(said); ok {
		r.add(&e, server)
	} else if m := answered.FindSubmatch(said); m != nil && m[1][0] == '5' && r.now != 0 {
		r.read++
		r.f.Add(r.f.Series(series.ServerErrors, r.placeOf(server)), r.now, 1)
	} else if r.fails(said, server) {
		r.read++
	} else if level == 'E' {
		if complaint == nil {
			complaint = said
		}
		r.complain(complaint, server)
	}
}

// ofSeconds is before the time in lines of llama.cpp's server until 2024-08: INFO [ main] model loaded | tid="1" timestamp=1719338191.
var ofSeconds = []byte("\" timestamp=")

// ofUnit parses the stamp that the journal and syslog put before lines, "Dec 02 12:10:45 ".
func (r *reader) ofUnit(b []byte) bool {
	before := r.unit.Year
	at, ok := r.unit.Wall(b)
	if !ok {
		return false
	}
	if before == 0 {
		r.f.Set.Diags.Add(trace.LogNoYear.Of(r.f.Source().Name, r.unit.Year))
	}
	r.f.Within(1e9)
	r.f.Source().Zone.Local = true
	r.now, r.local = at, true
	r.f.Saw(at)
	return true
}

func (r *reader) stamped(at trace.Time) {
	if zone := &r.f.Source().Zone; zone.By == "" {
		zone.By = "stamps with a zone"
	}
	r.f.Within(1e6)
	r.now = at
	r.f.Saw(at)
}

// server returns the server of a line, which a log collector may name.
func (r *reader) server(w logline.Wrapping) int32 {
	key := w.Server + "\x00" + w.Host
	id, ok := r.base[key]
	if !ok {
		s := series.Server{Name: r.name, Host: w.Host}
		if w.Server != "" {
			s.Name = w.Server
		}
		id = r.f.Server(s)
		r.base[key] = id
	}
	return id
}

// placeOf returns the place of a server.
func (r *reader) placeOf(server int32) int32 {
	return r.f.Place(series.Place{Server: server, Rank: trace.NoRank, GPU: series.NoGPU})
}

// add adds a request that has just ended.
func (r *reader) add(e *ended, server int32) {
	r.read++
	end := r.now
	if end == 0 {
		end = r.up
	}
	if end == 0 {
		r.untimed++
		return
	}
	row := spantable.NewRequestRecord()
	row.Who, row.Role, row.Line, row.Server = spantable.Server, spantable.Unified, uint32(r.line), server
	row.Local = r.local
	row.E2E, row.End, row.Start = e.total, end, end-trace.Time(e.total)
	at := row.Start
	if e.queue > 0 && e.queue <= e.total {
		row.Phases[spantable.Queue] = spantable.Phase{From: at, To: at + trace.Time(e.queue)}
		at += trace.Time(e.queue)
	}
	if e.before >= 0 && e.before <= e.total {
		row.Phases[spantable.Prefill] = spantable.Phase{From: at, To: at + trace.Time(e.before)}
		row.First = at + trace.Time(e.before)
		row.TTFT = int64(row.First - row.Start)
	}
	if e.prompt >= 0 {
		row.Prompt = e.prompt
		row.Cached = e.prompt - e.computed
	}
	if e.tokens >= 0 {
		row.Completion = e.tokens
	}
	id := append([]byte("task "), e.id...)
	if e.id == nil {
		id = strconv.AppendInt([]byte("line "), r.line, 10)
	}
	row.ID = r.rows.Text(id)
	if r.now == 0 {
		r.aged = append(r.aged, row)
		return
	}
	r.rows.Add(row)
}

// complain records an error line. The message follows the last source position, "infer/mod.rs:105: ".
func (r *reader) complain(b []byte, server int32) {
	if i := bytes.LastIndex(b, []byte(".rs:")); i >= 0 {
		if _, said, ok := bytes.Cut(b[i+len(".rs:"):], []byte(": ")); ok {
			b = said
		}
	}
	b = bytes.TrimLeft(bytes.TrimPrefix(b, []byte("ERROR ")), " ")
	if i := bytes.LastIndex(b, []byte("_launcher: ")); i >= 0 {
		b = b[i+len("_launcher: "):]
	}
	if bytes.HasSuffix(b, []byte(" standard error output:")) {
		return // the shard's own lines follow
	}
	place := r.placeOf(server)
	if kind, says := endOf(b); says != "" {
		r.read++
		r.f.Instant(series.Instant{Time: r.now, Kind: kind, Place: place, Line: uint32(r.line), Count: 1}, says)
		return
	}
	if len(b) > 0 && r.complaints.Add(errortext.Said(b, ""), series.Instant{Time: r.now, Place: place, Line: uint32(r.line)}) {
		r.read++
	}
}

// endOf returns how TGI's launcher words the end of a shard or of its web server: "Shard process was signaled to shutdown with signal 9 rank=0",
// "Shard 0 crashed", "Shard 0 failed to start". says is "" for any other line.
func endOf(b []byte) (kind series.InstantKind, says string) {
	if n, ok := logline.After(b, "signaled to shutdown with signal "); ok {
		code := strconv.Itoa(-int(n))
		if kind = series.Exception; code == "-6" || code == "-15" { // it was told to, or aborted: for another reason
			kind = series.Crash
		}
		return kind, "a shard ended with exit code " + code + errortext.ExitCodeMeaning(code)
	}
	switch {
	case bytes.HasPrefix(b, []byte("Shard ")) && bytes.HasSuffix(b, []byte(" crashed")):
		return series.Crash, "a shard crashed"
	case bytes.HasPrefix(b, []byte("Shard ")) && bytes.HasSuffix(b, []byte(" failed to start")):
		return series.Crash, "a shard did not start"
	case bytes.Equal(b, []byte("Webserver Crashed")):
		return series.Crash, "its web server crashed"
	}
	return 0, ""
}
