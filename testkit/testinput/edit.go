package testinput

import "strings"

// words are what means something to readers of dumps and traces, and what means nothing.
var words = []string{"decode_forward", "prefill_forward", "Scheduler [TP 0]  [PP 0] (host:443ee9c0 | pid:88)", "Req", "Bootstrap Room",
	"", "0", "1", "9223372036854775807", "-1", "retract", "abort", "llm_request", "http_request", `"},{"spanId":"`, "null",
	"ProfilerStep#1", "nccl:all_reduce", "record_param_comms", "kernel", "gpu_memcpy", "cudaLaunchKernel", "X", "s", "f", "e", "1e300", "[TP00-DP01] 7"}

// Edit replaces keys, texts, and what is between them in a JSON document by what is
// elsewhere in it, or by one of some words. Four bytes of edits are one place.
func Edit(doc, edits []byte) []byte {
	tokens := strings.Split(string(doc), `"`)
	for ; len(edits) >= 4; edits = edits[4:] {
		at := (int(edits[0])<<8 | int(edits[1])) * 7 % len(tokens)
		switch from := (int(edits[2])<<8 | int(edits[3])) * 5 % len(tokens); edits[3] % 3 {
		case 0:
			tokens[at] = tokens[from]
		case 1:
			tokens[at] = words[from%len(words)]
		case 2:
			tokens[at], tokens[from] = tokens[from], tokens[at]
		}
	}
	return []byte(strings.Join(tokens, `"`))
}
