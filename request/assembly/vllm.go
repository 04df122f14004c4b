package assembly

import "github.com/sgtrace/sgtrace/request"

// vllmRequest is the one span that vLLM writes per request (v1 engine,
// vllm/tracing): all of its times are attributes.
const vllmRequest = "llm_request"

// vllmDurations reads the times of a vLLM request into m.
func (b *builder) vllmDurations(root int, m *request.Metrics) {
	for a := range b.dump.Args.All(b.dump.Span(root).Args) {
		switch a.Key {
		case b.keys.inQueue:
			m.Queue = argSeconds(a)
		case b.keys.inPrefill:
			m.Prefill = argSeconds(a)
		case b.keys.inDecode:
			m.Decode = argSeconds(a)
		}
	}
}
