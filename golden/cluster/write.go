package cluster

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/sgtrace/sgtrace/golden/otlp"
)

// Write writes the dump that the tracing of all servers and the gateway leaves behind.
func Write(w io.Writer, r *Run) error {
	rng := r.Config.stream(streamIDs, 0)
	var resources []otlp.Resource
	for i := range r.Processes {
		if i == 0 {
			resources = append(resources, otlp.SMG())
		} else {
			resources = append(resources, otlp.SGLang(rng, ""))
		}
	}
	x := &writer{otlp.NewExporter(w, resources), r}
	for i, p := range r.Processes {
		if p.Killed != 0 {
			x.Exporter.Kill(i, p.Killed)
		}
	}
	for _, q := range r.Requests {
		if err := x.Exporter.EndUntil(q.Arrival); err != nil {
			return err
		}
		x.request(q)
	}
	return x.Exporter.Close()
}

// writer writes the requests of a run.
type writer struct {
	Exporter *otlp.Exporter
	run      *Run
}

// put writes a span that ends while the dump is written; times of spans that never end are 0.
func (x *writer) put(process int, at int64, s *otlp.Span) {
	if at > 0 && at <= x.run.End {
		x.Exporter.End(process, at, s)
	}
}

// request writes the spans of a request.
func (x *writer) request(q *Request) {
	rng := x.run.Config.stream(streamIDs, q.Number+1)
	gateway := x.run.Config.Gateway && !q.Health
	trace, parent := otlp.NewTraceID(rng, gateway), uint64(0)
	if gateway {
		parent = otlp.NewSpanID(rng)
		x.gateway(rng, q, trace, parent)
	}
	for i, h := range q.Halves {
		if i > 0 && !gateway {
			trace = otlp.NewTraceID(rng, false)
		}
		t := &tree{writer: x, rng: rng, req: q, half: h, trace: trace, root: otlp.NewSpanID(rng), parent: parent}
		t.write()
	}
}

func (x *writer) gateway(rng *rand.Rand, q *Request, trace otlp.TraceID, id uint64) {
	run := x.run
	clock := &run.Hosts[0].Clock
	g := otlp.Gateway{URI: "/v1/chat/completions", ID: q.ID, Status: "200", Start: clock.At(q.Arrival), End: clock.At(q.End)}
	if run.Config.Pools[q.Pool].Embedding {
		g.URI = "/v1/embeddings"
	}
	if q.Outcome == Broken {
		g.Status = "502"
	}
	var urls [][2]string
	for i, h := range q.Halves {
		name := "url"
		if len(q.Halves) > 1 {
			name = []string{"prefill_url", "decode_url"}[i]
		}
		urls = append(urls, [2]string{name, run.Hosts[run.Servers[h.Server].Host].Address})
		if h.FirstToken != 0 && q.Outcome != Broken {
			g.Answered = min(clock.At(h.FirstToken+300*us), g.End)
		}
	}
	out := g.Span(rng, trace, id)
	if len(urls) > 0 {
		out.Sent(clock.At(q.Sent), urls...)
	}
	if len(urls) > 1 && g.Answered != 0 {
		out.Received(g.Answered)
	}
	x.put(0, q.End, out)
}

// tree writes the spans of one half.
type tree struct {
	*writer
	rng    *rand.Rand
	req    *Request
	half   *Half
	trace  otlp.TraceID
	root   uint64
	parent uint64 // the gateway's span, or 0
	clock  *Clock
	last   otlp.Ref // of the tokenizer
}

func (t *tree) write() {
	run, h := t.run, t.half
	if h.Received == 0 {
		return
	}
	s := &run.Servers[h.Server]
	life := &s.Lives[h.Life]
	t.clock = &run.Hosts[s.Host].Clock
	k := thread{tree: t, process: life.Tokenizer, from: h.Received, to: h.Dispatched}
	k.slice("tokenize", 1, h.Received, h.Tokenized)
	k.slice("api_server_dispatch", 2, h.Dispatching, h.Dispatched)
	k.close()
	t.last = k.last
	if h.Begin != 0 && h.Begin <= run.End {
		for tp, p := range life.Schedulers {
			t.scheduler(s.Role, p, int64(tp)*tpSpread)
		}
	}
	t.endRoot(life)
}

// scheduler writes the activity of one rank, some time after the first one.
func (t *tree) scheduler(role Role, process int, late int64) {
	h := t.half
	k := thread{tree: t, process: process, late: late, from: h.Begin, to: h.Ended, remote: true, reason: h.Reason}
	begin := h.Begin + 15*us
	switch role {
	case Unified:
		k.slice("request_process", 2, begin, h.Queued)
		k.slice("prefill_waiting", 1, h.Waiting, h.Formed)
		k.prefill()
		k.decode(h.Prefilled)
	case Prefill:
		k.slice("prefill_prepare", 1, begin, h.Queued)
		k.slice("prefill_bootstrap", 1, h.Queued, h.Waiting)
		k.slice("prefill_waiting", 1, h.Waiting, h.Formed)
		k.prefill()
		k.slice("prefill_transfer_kv_cache", 1, h.TransferStart, h.TransferEnd)
	case Decode:
		k.slice("decode_prepare", 1, begin, h.Queued)
		k.slice("decode_bootstrap", 1, h.Queued, h.Reserved)
		k.slice("decode_transferred", 1, h.Reserved, h.Waiting)
		k.slice("decode_waiting", 1, h.Waiting, h.Formed)
		k.decode(h.Formed)
	}
	k.close()
}

// endRoot writes the root, with gen_ai attributes if the tokenizer learned how it ended.
func (t *tree) endRoot(life *Life) {
	q, h := t.req, t.half
	role := t.run.Servers[h.Server].Role
	p := &t.run.Config.Pools[q.Pool]
	about := otlp.Root{RID: h.RID, Tenant: q.Tenant}
	if role != Unified {
		about.Room = q.Room
	}
	if h.Finish != "" {
		about.Answer = &otlp.Answer{
			ID: h.RID, Completion: h.Produced, Prompt: q.Prompt, Cached: q.Cached, Max: q.MaxTokens, Temperature: 0.7,
			Model: p.Model, Finish: h.Finish,
			FirstToken: t.clock.At(h.FirstToken) - t.clock.At(h.Received), Prefilling: t.clock.At(h.FirstToken) - t.clock.At(h.Dispatched),
		}
		if p.Embedding {
			about.Answer.Completion = -1
		}
		if q.Health {
			about.Answer.ID = "HEALTH_CHECK_" + h.RID
		}
	}
	out := otlp.Span{
		Trace: t.trace, ID: t.root, Parent: t.parent, Flags: otlp.FlagLocal, Name: fmt.Sprintf("%s Req %.8s", role, h.RID),
		Start: otlp.Grid(t.clock.At(h.Received)), End: otlp.Grid(t.clock.At(h.End)), Attributes: about.Attributes(),
	}
	if t.parent != 0 {
		out.Flags = otlp.FlagRemote
	}
	t.put(life.Tokenizer, h.End, &out)
}

// stats returns the numbers that SGLang's scheduler logs about a finished request.
func stats(role Role, q *Request, h *Half, clock *Clock) (text string) {
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
	text = fmt.Sprintf("ReqTimeStats(rid=%s, bootstrap_room=%s, input_len=%d, cached_input_len=%d, output_len=%d, attempts=1, type=%s): ", h.RID, room, q.Prompt, q.Cached, h.Produced, kind)
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
	if role == Prefill && h.TransferEnd > h.TransferStart {
		const each = 0.131 // MB per token
		total, took := each*float64(q.Prompt), float64(h.TransferEnd-h.TransferStart)/1e6
		defer func() { text += fmt.Sprintf(", transfer_speed=%.2f GB/s, transfer_total=%.2f MB", total/took, total) }()
	}
	at := clock.At(entry)
	text += ", forward_duration=" + ms(h.Formed, h.Ended) + fmt.Sprintf(", entry_time=%d.%06d", at/1e9, at%1e9/1e3)
	return text
}

// WriteRecords writes the records of --export-metrics-to-file of a server, with all its DP ranks. Each contains the prompt,
// which readers must never show.
func WriteRecords(w io.Writer, r *Run, front int, prompt string) error {
	s := &r.Servers[front]
	clock := &r.Hosts[s.Host].Clock
	unix := func(t int64) string {
		t = clock.At(t)
		return fmt.Sprintf("%d.%06d", t/1e9, t%1e9/1e3)
	}
	for _, q := range r.Requests {
		for _, h := range q.Halves {
			of := &r.Servers[h.Server]
			if of.Host != s.Host || h.End == 0 || h.Finish == "" || h.End > r.End || q.Health {
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
			rate, more := "", ""
			if of.DP >= 0 {
				more = fmt.Sprintf(`, "dp_rank": %d`, of.DP)
			}
			if n := len(h.Retracted); n > 0 {
				more += fmt.Sprintf(`, "num_retractions": %d`, n)
			}
			if n := h.Produced - 1; n > 0 && h.End > h.FirstToken {
				rate = fmt.Sprintf(`, "decode_throughput": %g`, float64(n)/(float64(h.End-h.FirstToken)/1e9))
			}
			_, err := fmt.Fprintf(w, `{"request_parameters": "{\"text\": \"%s\", \"stream\": true%s}", "id": "%s", "finish_reason": %s, "prompt_tokens": %d, "completion_tokens": %d, "cached_tokens": %d, `+
				`"e2e_latency": %.6f, "queue_time": %.6f, "forward_entry_time": %s, "prefill_finished_time": %s, "request_received_ts": %s, "response_sent_to_client_ts": %s, "request_finished_ts": %s%s%s, "weight_version": "default"}`+"\n",
				prompt, room, h.RID, finish, q.Prompt, h.Produced, q.Cached, float64(h.End-h.Received)/1e9, float64(max(0, h.Formed-h.Waiting))/1e9,
				unix(max(h.Formed, h.Received)), unix(max(h.Prefilled, h.Formed, h.Received)), unix(h.Received), unix(max(h.FirstToken, h.Received)), unix(h.End), rate, more)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
