package testset

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// A ServedBy is a request: when it began, in ms, and the threads that worked on it.
type ServedBy struct {
	At      int
	Threads []ServedThread
}

type ServedThread struct {
	Host string
	TP   int // -1 is the tokenizer
	PID  int
}

// Served makes a set of requests.
func Served(t *testing.T, list []ServedBy) *request.Set {
	var d Dump
	for i, r := range list {
		from := float64(1000 * r.At)
		root := Span{Trace: fmt.Sprintf("%032x", i+1), Name: fmt.Sprintf(" Req %08x", i), From: from, To: from + 900,
			Attrs: Attrs{"rid": fmt.Sprintf("%012x", i), "module": "sglang::request", "gen_ai.usage.completion_tokens": 1, "gen_ai.usage.prompt_tokens": 10}}
		id := d.Add(root)
		for _, th := range r.Threads {
			label, stage := "Scheduler", "prefill_forward"
			if th.TP < 0 {
				label, stage = "Tokenizer", "tokenize"
			}
			d.Thread(root, id, th.Host, label, th.TP, th.PID, Span{Name: stage, From: from, To: from + 800})
		}
	}
	return d.Set(t)
}
