package request

// vllmRequest is the one span that vLLM writes per request (v1 engine,
// vllm/tracing): all of its times are attributes.
const vllmRequest = "llm_request"

// vllmDurations reads the times of a vLLM request into m.
func (b *builder) vllmDurations(root int, m *Metrics) {
	for a := range b.Dump.Args.All(b.Dump.Span(root).Args) {
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
