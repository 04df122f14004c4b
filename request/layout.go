package request

import "strings"

// Layouts are the ways in which a producer arranges what it writes, as a set: a dump
// can hold several.
type Layouts uint8

const (
	LayoutV1a Layouts = 1 << iota
	LayoutV1b
	LayoutV2
	LayoutGateway
	LayoutVLLM
	LayoutOldNames // not a layout: stages have names that were changed within v2
)

// layoutWords name the layouts and tell when SGLang began to write them.
var layoutWords = []struct {
	layout Layouts
	word   string
}{
	{LayoutV1a, "v1a (2025-09)"}, // request, thread, flat stages (#9962)
	{LayoutV1b, "v1b (2025-10)"}, // the same under "Bootstrap Room" spans (#10804)
	{LayoutV2, "v2 (2026-04)"},   // nested stages, attribute module, api_server_dispatch (#17862, #22186)
	{LayoutGateway, "gateway"},   // sgl-model-gateway and its successors
	{LayoutVLLM, "vllm"},         // one span per request
}

// String returns the words that reports print.
func (l Layouts) String() string {
	if l&LayoutV1b != 0 {
		l &^= LayoutV1a // their request spans look the same
	}
	var words []string
	for _, w := range layoutWords {
		switch {
		case l&w.layout == 0:
		case w.layout == LayoutV2 && l&LayoutOldNames != 0:
			words = append(words, "v2 (2026-02)")
		default:
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}
