package enginelog

import (
	"bytes"
	"math"
	"time"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// An ended is a server's report of a finished request; -1 is unknown.
type ended struct {
	total, queue, before, after int64 // ns: total, wait, prefill, and the time after the first token
	prompt, computed, tokens    int64 // of the prompt, of its computed part, and of the answer
	id                          []byte
}

func newEnded() ended { return ended{-1, -1, -1, -1, -1, -1, -1, nil} }

// ofHuggingFace parses the fields of a span of TGI or TEI, as text or as JSON: total_time="1.2s" .. queue_time="686.203µs"
// ...
func ofHuggingFace(b []byte) (e ended, ok bool) {
	if !bytes.Contains(b, []byte("total_time")) {
		return e, false
	}
	field := func(key string) int64 {
		i := bytes.Index(b, []byte(key))
		if i < 0 {
			return -1
		}
		rest := bytes.TrimLeft(b[i+len(key):], `\":= `)
		value, _, _ := bytes.Cut(rest, []byte(`"`))
		d, err := time.ParseDuration(string(bytes.TrimRight(value, `\`)))
		if err != nil || d < 0 {
			return -1
		}
		return int64(d)
	}
	e = newEnded()
	e.total, e.queue = field("total_time"), field("queue_time")
	inference, each := field("inference_time"), field("time_per_token")
	if inference >= 0 && each > 0 { // no field has their number
		e.tokens = int64(math.Round(float64(inference) / float64(each)))
	}
	return e, e.total >= 0 && e.queue >= 0 && inference >= 0
}

// timing matches a line of llama.cpp's print_timing.
var timing = lazyregexp.New(`(prompt eval|generation eval|eval|total) time +=\s+([\d.]+) ms(?: / +(\d+) (?:tokens|runs))?`)

// A llama reads llama.cpp's consecutive lines about a request.
type llama struct {
	now     ended
	prompts map[string]int64 // tokens by task
}

var (
	task     = lazyregexp.New(`(?:\| task |"id_task":|task_id[":]+|task )(\d+)`)
	ofPrompt = lazyregexp.New(`(?:new prompt,.*(?:n_prompt_tokens|task\.n_tokens)|"num_prompt_tokens") ?[=:] ?(\d+)`)
)

// take reads a line; ok means that a request has ended.
func (x *llama) take(b []byte) (e ended, ok bool) {
	if m := ofPrompt.FindSubmatch(b); m != nil {
		if t := task.FindSubmatch(b); t != nil {
			const most = 1 << 16 // tasks without an end
			if len(x.prompts) > most {
				clear(x.prompts)
			}
			x.prompts[string(t[1])], _ = number(m[1])
		}
		return e, false
	}
	if t := task.FindSubmatch(b); t != nil && bytes.Contains(b, []byte("print_timing")) {
		if !bytes.Equal(x.now.id, t[1]) {
			x.now = newEnded()
		}
		x.now.id = append([]byte(nil), t[1]...)
	}
	m := timing.FindSubmatch(b)
	if m == nil {
		return e, false
	}
	ms, _ := logline.Decimal(m[2], 1)
	ns := int64(ms * 1e6)
	tokens := int64(-1)
	if n, ok := number(m[3]); ok {
		tokens = n
	}
	switch string(m[1]) {
	case "prompt eval":
		x.now.before, x.now.computed = ns, tokens
		return e, false
	case "eval", "generation eval":
		x.now.after, x.now.tokens = ns, tokens
		return e, false
	}
	e = x.now
	x.now = newEnded()
	if e.total = ns; e.before < 0 || e.after < 0 {
		return e, false // from a program that is not a server
	}
	e.prompt = e.computed
	if n, ok := x.prompts[string(e.id)]; ok {
		e.prompt = max(n, e.computed)
		delete(x.prompts, string(e.id))
	}
	return e, true
}

func number(b []byte) (int64, bool) {
	n, ok := logline.Decimal(b, 1)
	return int64(n), ok && n >= 0 && n < 1e12
}

// answered matches llama.cpp's line about a response: `log_server_r: done request: POST /v1/chat/completions 127.0.0.1
// 500`.
var answered = lazyregexp.New(`(?:^|[ :])request: POST \S+ \S+ (\d{3})\s*$`)

// uptime matches the prefix of llama.cpp's lines since 2026: minutes, seconds, milliseconds, and microseconds since the
// start, and a level.
var uptime = lazyregexp.New(`^(?:\[\d+\] )?(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) ([DIWE]) `)

// sinceStart parses that prefix; level is 0 if there is none.
func sinceStart(b []byte) (at trace.Time, level byte, rest []byte) {
	m := uptime.FindSubmatch(b)
	if m == nil {
		return 0, 0, b
	}
	var n [4]int64
	for i := range n {
		n[i], _ = number(m[i+1])
	}
	return trace.Time(n[0]*60e9 + n[1]*1e9 + n[2]*1e6 + n[3]*1e3), m[5][0], b[len(m[0]):]
}
