package cluster

import (
	"fmt"
	"io"
)

// stats returns the numbers that SGLang's scheduler logs of a finished request.
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
		const each = 0.131 // MB of a token
		total, took := each*float64(q.Prompt), float64(h.TransferEnd-h.TransferStart)/1e6
		defer func() { text += fmt.Sprintf(", transfer_speed=%.2f GB/s, transfer_total=%.2f MB", total/took, total) }()
	}
	at := clock.At(entry)
	text += ", forward_duration=" + ms(h.Formed, h.Ended) + fmt.Sprintf(", entry_time=%d.%06d", at/1e9, at%1e9/1e3)
	return text
}

// WriteRecords writes the records of --export-metrics-to-file of a server, of all its DP ranks. Each
// has its prompt, which readers must never show.
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
