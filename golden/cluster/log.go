package cluster

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A Batch is what a server logs of its batches. Times are true.
type Batch struct {
	At                                            int64
	Prefill                                       bool
	NewSeqs, NewTokens, CachedTokens              int // of a prefill
	Running, Queued, KV                           int // requests, requests, tokens
	Given                                         int // tokens since the decode line before
	Since                                         int64
	Bootstrapping, Sending, Preallocating, Coming int
}

// everySteps is after how many decode steps a server logs.
const everySteps = 40

// pool is how many tokens the KV cache of a server holds.
const pool = 400_000

// logPrefill notes a prefill batch as SGLang's scheduler does: when it is formed.
func (v *server) logPrefill(batch []portion) {
	b := v.batchNow(true)
	for _, p := range batch {
		b.NewSeqs++
		b.NewTokens += p.tokens
		if len(p.job.half.Chunks) == 0 {
			b.CachedTokens += p.job.req.Cached
		}
	}
	v.note(b)
}

// logDecode notes a decode step, and logs one of everySteps.
func (v *server) logDecode(given int) {
	v.steps, v.given = v.steps+1, v.given+given
	if v.steps%everySteps != 0 {
		return
	}
	b := v.batchNow(false)
	b.Given, b.Since = v.given, v.given0
	v.given, v.given0 = 0, b.At
	v.note(b)
}

func (v *server) note(b Batch) {
	s := &v.sim.run.Servers[v.index]
	s.Batches = append(s.Batches, b)
}

// batchNow is the state of a server.
func (v *server) batchNow(prefill bool) Batch {
	b := Batch{At: v.sim.Agenda.Now, Prefill: prefill, Running: len(v.running), Queued: len(v.waiting)}
	for _, j := range v.jobs {
		switch h := j.half; {
		case v.role == Prefill && h.Waiting == 0:
			b.Bootstrapping++
		case v.role == Prefill && h.TransferStart != 0:
			b.Sending++
		case v.role == Decode && h.Waiting == 0:
			b.Coming++
		}
	}
	for _, j := range v.running {
		b.KV += j.req.Prompt + j.half.Produced
	}
	return b
}

// A Layout is how a release writes its log, and what collects it puts around a line.
type Layout struct {
	Name string
	Zone time.Duration // of the wall clock, east of UTC
	// Batch follows the word batch: ".", or ",". Comma ends lines with one, Graph is what the graph
	// is called, at the End of a line or before its throughput; "" is not told.
	Batch, Graph string
	Comma, End   bool
	Millis       bool // of stamps
	Pending      bool // prompt tokens that wait are told
	// Wrap puts something around a line, which was written at a time.
	Wrap func(at time.Time, pod, line string) string
}

// Layouts are those of releases since 2024, by whatever collects them.
var Layouts = []Layout{
	{Name: "2024-09", Batch: "."},
	{Name: "2025-05", Batch: ".", Graph: "cuda", Zone: -7 * time.Hour},
	{Name: "2025-11", Batch: ",", Graph: "cuda", Comma: true, Zone: 9 * time.Hour, Wrap: func(_ time.Time, pod, line string) string {
		return "(SGLangEngine pid=35555, ip=" + pod + ") " + line
	}},
	{Name: "2026-01", Batch: ",", Graph: "npu", End: true, Zone: 5*time.Hour + 30*time.Minute, Wrap: func(at time.Time, _, line string) string {
		return at.UTC().Format("2006-01-02T15:04:05.000000000Z") + " " + line
	}},
	{Name: "2026-04", Batch: ",", Graph: "cuda", End: true, Pending: true, Zone: -4 * time.Hour, Wrap: func(at time.Time, _, line string) string {
		return `{"log":"` + strings.ReplaceAll(line, `"`, `\"`) + `\n","stream":"stdout","time":"` + at.UTC().Format("2006-01-02T15:04:05.000000000Z") + `"}`
	}},
	{Name: "2026-07", Batch: ",", Graph: "cuda", Pending: true, Millis: true, Zone: 2 * time.Hour, Wrap: func(at time.Time, pod, line string) string {
		return at.UTC().Format("Jan _2 15:04:05") + " " + pod + " sglang[4100]: " + line
	}},
}

// A Logging says what a server logs.
type Logging struct {
	Layout
	Stats bool // ReqTimeStats of each request
}

// WriteLog writes the log of a server.
func WriteLog(w io.Writer, r *Run, server int, l Logging) error {
	s := &r.Servers[server]
	clock := &r.Hosts[s.Host].Clock
	type line struct {
		at   int64
		text string
	}
	var lines []line
	add := func(at int64, format string, args ...any) {
		if at > 0 && at <= r.End {
			lines = append(lines, line{clock.At(at), fmt.Sprintf(format, args...)})
		}
	}
	for i := range s.Lives {
		add(max(s.Lives[i].From, r.Start), "The server is fired up and ready to roll!")
	}
	last := int64(0)
	for i := range s.Batches {
		b := &s.Batches[i]
		if b.Prefill {
			add(b.At, "%s", l.prefill(s.Role, b, max(last, r.Start)))
			last = b.At
		} else {
			add(b.At, "%s", l.decode(s.Role, b))
		}
	}
	if l.Stats {
		for _, q := range r.Requests {
			for _, h := range q.Halves {
				if h.Server == server && h.Ended != 0 && h.Formed != 0 {
					add(h.Ended, "%s", stats(s.Role, q, h, clock))
				}
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(min(1, max(-1, a.at-b.at))) })
	for _, x := range lines {
		at := time.Unix(0, x.at).UTC().Add(l.Zone)
		stamp := at.Format("2006-01-02 15:04:05")
		if l.Millis {
			stamp = at.Format("2006-01-02 15:04:05.000")
		}
		text := fmt.Sprintf("[%s TP0] %s", stamp, x.text)
		if l.Wrap != nil {
			text = l.Wrap(time.Unix(0, x.at), r.Name(server), text)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

func (l *Layout) prefill(role Role, b *Batch, before int64) string {
	parts := []string{"Prefill batch" + l.Batch}
	if l.Batch == "." {
		parts[0] += fmt.Sprintf(" #new-seq: %d", b.NewSeqs)
	} else {
		parts = append(parts, fmt.Sprintf("#new-seq: %d", b.NewSeqs))
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	add("#new-token: %d", b.NewTokens)
	add("#cached-token: %d", b.CachedTokens)
	add("token usage: %.2f", float64(b.KV)/pool)
	add("#running-req: %d", b.Running)
	add("#queue-req: %d", b.Queued)
	if l.Pending {
		add("#pending-token: 0")
	}
	if role == Prefill {
		add("#bootstrap-req: %d", b.Bootstrapping)
		add("#inflight-req: %d", b.Sending)
	}
	return l.close(parts, fmt.Sprintf("input throughput (token/s): %.2f", float64(b.NewTokens)/(float64(b.At-before)/1e9+1e-9)), "False")
}

func (l *Layout) decode(role Role, b *Batch) string {
	first := fmt.Sprintf("#running-req: %d", b.Running)
	parts := []string{"Decode batch" + l.Batch + " " + first}
	if l.Batch == "," {
		parts = []string{"Decode batch", first}
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	add("#token: %d", b.KV)
	add("token usage: %.2f", float64(b.KV)/pool)
	if role == Decode {
		add("pre-allocated usage: 0.00")
		add("#prealloc-req: %d", b.Preallocating)
		add("#transfer-req: %d", b.Coming)
		add("#retracted-req: 0")
	}
	return l.close(parts, fmt.Sprintf("gen throughput (token/s): %.2f, #queue-req: %d", float64(b.Given)/(float64(b.At-b.Since)/1e9), b.Queued), "True")
}

// close adds how fast it was, and whether it ran as a graph.
func (l *Layout) close(parts []string, rate, graph string) string {
	graph = l.Graph + " graph: " + graph
	switch {
	case l.Graph == "":
		parts = append(parts, rate)
	case l.End:
		parts = append(parts, rate, graph)
	default:
		parts = append(parts, graph, rate)
	}
	text := strings.Replace(strings.Join(parts, ", "), "batch,,", "batch,", 1)
	if l.Comma {
		text += ", "
	}
	return text
}

// stats is what SGLang's scheduler says of a request that it has finished.
func stats(role Role, q *Request, h *Half, clock *Clock) string {
	ms := func(from, to int64) string {
		if from == 0 || to <= from {
			return "0.00ms"
		}
		return fmt.Sprintf("%.2fms", float64(to-from)/1e6)
	}
	kind, room := "unified", "None"
	if role != Unified {
		kind, room = string(role), fmt.Sprint(q.Room)
	}
	text := fmt.Sprintf("ReqTimeStats(rid=%s, bootstrap_room=%s, input_len=%d, cached_input_len=%d, output_len=%d, attempts=1, type=%s): ", h.RID, room, q.Prompt, q.Cached, h.Produced, kind)
	entry := h.Queued
	switch role {
	case Prefill:
		text += "bootstrap_duration=" + ms(h.Queued, h.Waiting) + ", "
	case Decode:
		text += "bootstrap_duration=" + ms(h.Queued, h.Reserved) + ", alloc_wait_duration=0.00ms, transfer_duration=" + ms(h.Reserved, h.Waiting) + ", "
	default:
		entry = h.Waiting
	}
	text += "queue_duration=" + ms(h.Waiting, h.Formed)
	if role == Unified {
		text += ", initial_prefill_elapsed=" + ms(h.Formed, h.Prefilled) + ", post_prefill_elapsed=" + ms(h.Prefilled, h.Ended)
	}
	at := clock.At(entry)
	return text + ", forward_duration=" + ms(h.Formed, h.Ended) + fmt.Sprintf(", entry_time=%d.%06d", at/1e9, at%1e9/1e3)
}

// WriteRecords writes the records of --export-metrics-to-file of a server. Each has its prompt,
// which readers must never show.
func WriteRecords(w io.Writer, r *Run, server int, prompt string) error {
	s := &r.Servers[server]
	clock := &r.Hosts[s.Host].Clock
	unix := func(t int64) string {
		t = clock.At(t)
		return fmt.Sprintf("%d.%06d", t/1e9, t%1e9/1e3)
	}
	for _, q := range r.Requests {
		for _, h := range q.Halves {
			if h.Server != server || h.End == 0 || h.Finish == "" || h.End > r.End || q.Health {
				continue
			}
			room := ""
			if s.Role != Unified {
				room = fmt.Sprintf(`, \"bootstrap_room\": %d`, q.Room)
			}
			finish := fmt.Sprintf(`{"type": "%s"}`, h.Finish)
			if h.Finish == "abort" {
				finish = `{"type": "abort", "message": "` + prompt + `", "status_code": 499}`
			}
			rate := ""
			if n := h.Produced - 1; n > 0 && h.End > h.FirstToken {
				rate = fmt.Sprintf(`, "decode_throughput": %g`, float64(n)/(float64(h.End-h.FirstToken)/1e9))
			}
			_, err := fmt.Fprintf(w, `{"request_parameters": "{\"text\": \"%s\", \"stream\": true%s}", "id": "%s", "finish_reason": %s, "prompt_tokens": %d, "completion_tokens": %d, "cached_tokens": %d, `+
				`"e2e_latency": %.6f, "queue_time": %.6f, "forward_entry_time": %s, "prefill_finished_time": %s, "request_received_ts": %s, "response_sent_to_client_ts": %s, "request_finished_ts": %s%s, "weight_version": "default"}`+"\n",
				prompt, room, h.RID, finish, q.Prompt, h.Produced, q.Cached, float64(h.End-h.Received)/1e9, float64(max(0, h.Formed-h.Waiting))/1e9,
				unix(max(h.Formed, h.Received)), unix(max(h.Prefilled, h.Formed, h.Received)), unix(h.Received), unix(max(h.FirstToken, h.Received)), unix(h.End), rate)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
