package otlp

import (
	"fmt"
	"strings"
)

// Process is a process of SGLang as its thread spans describe it. Missing ranks are -1, and TP is -1 if it is not a
// scheduler.
type Process struct {
	Label, HostID string
	TP, PP, DP    int
	PID           int
}

// ThreadName returns the name of a thread span. The double blanks are real.
func (p *Process) ThreadName() string {
	var b strings.Builder
	b.WriteString(p.Label)
	if p.TP >= 0 {
		fmt.Fprintf(&b, " [TP %d]  [PP %d] ", p.TP, p.PP)
		if p.DP >= 0 {
			fmt.Fprintf(&b, " [DP %d] ", p.DP)
		}
	}
	fmt.Fprintf(&b, "(host:%.8s | pid:%d)", p.HostID, p.PID)
	return b.String()
}

// ThreadAttributes returns the attributes of a thread span.
func (p *Process) ThreadAttributes() Attributes {
	var a Attributes
	if p.TP >= 0 {
		a.Integer("tp_rank", int64(p.TP))
		a.Integer("pp_rank", int64(p.PP))
	}
	if p.DP >= 0 {
		a.Integer("dp_rank", int64(p.DP))
	}
	a.Text("host_id", p.HostID)
	a.Integer("pid", int64(p.PID))
	a.Text("thread_label", p.Label)
	return a
}

// Root is the content of SGLang's root span of a request. Answer is nil if the tokenizer did not learn how the request
// ended.
type Root struct {
	RID    string
	Room   uint64 // bootstrap room, or 0
	Tenant string // or empty
	Answer *Answer
}

// Answer is the gen_ai attributes of a finished request.
type Answer struct {
	ID                     string
	Completion             int // tokens; -1 for an embedding, which has no sampling parameters either
	Prompt, Cached, Max    int
	Temperature            float64
	Model, Finish          string
	FirstToken, Prefilling int64 // ns since the request was received, and since it was sent to the scheduler
}

// Attributes returns the attributes of the root span.
func (r *Root) Attributes() Attributes {
	var a Attributes
	a.Text("rid", r.RID)
	a.Text("module", "sglang::request")
	if r.Room != 0 {
		a.Text("bootstrap_room", fmt.Sprintf("0x%x", r.Room))
	}
	if r.Tenant != "" {
		a.Text("http.request.header.x-tenant-id", r.Tenant)
	}
	g := r.Answer
	if g == nil {
		return a
	}
	if g.Completion >= 0 {
		a.Integer("gen_ai.usage.completion_tokens", int64(g.Completion))
	}
	a.Integer("gen_ai.usage.prompt_tokens", int64(g.Prompt))
	a.Integer("gen_ai.usage.cached_tokens", int64(g.Cached))
	a.Text("gen_ai.request.id", g.ID)
	if g.Completion >= 0 {
		a.Integer("gen_ai.request.max_tokens", int64(g.Max))
		a.Double("gen_ai.request.top_p", 0.95)
		if g.Temperature != 0 {
			a.Double("gen_ai.request.temperature", g.Temperature)
		}
	}
	a.Text("gen_ai.response.model", g.Model)
	a.Text("gen_ai.response.finish_reasons", `["`+g.Finish+`"]`)
	a.Double("gen_ai.latency.time_to_first_token", seconds(g.FirstToken))
	a.Double("gen_ai.latency.time_in_model_prefill", seconds(g.Prefilling))
	return a
}

// Grid returns the time that SGLang writes for t: it converts it through a float of seconds, which leaves multiples of 256
// ns, less than that away from t.
func Grid(t int64) int64 {
	s := float64(t/1e9) + float64(t%1e9)/1e9
	return int64(s * 1e9)
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
