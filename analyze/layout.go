package analyze

import (
	"strings"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// layouts are the ways in which a producer arranges its spans, as a set: a dump
// can hold several.
type layouts uint8

const (
	layoutV1a layouts = 1 << iota
	layoutV1b
	layoutV2
	layoutGateway
	layoutVLLM
	oldNames // not a layout: stages have names that were changed within v2
)

// layoutWords name the layouts and tell when SGLang began to write them.
var layoutWords = []struct {
	layout layouts
	word   string
}{
	{layoutV1a, "v1a (2025-09)"}, // request, thread, flat stages (#9962)
	{layoutV1b, "v1b (2025-10)"}, // the same under "Bootstrap Room" spans (#10804)
	{layoutV2, "v2 (2026-04)"},   // nested stages, attribute module, api_server_dispatch (#17862, #22186)
	{layoutGateway, "gateway"},   // sgl-model-gateway and its successors
	{layoutVLLM, "vllm"},         // one span per request
}

func (l layouts) String() string {
	if l&layoutV1b != 0 {
		l &^= layoutV1a // their request spans look the same
	}
	var words []string
	for _, w := range layoutWords {
		switch {
		case l&w.layout == 0:
		case w.layout == layoutV2 && l&oldNames != 0:
			words = append(words, "v2 (2026-02)")
		default:
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

// A layoutFinder recognises layouts by spans.
type layoutFinder struct {
	set    *request.Set
	module trace.Sym
	vllm   trace.Sym
	old    map[trace.Sym]bool // names of stages that were changed
}

func newLayoutFinder(s *request.Set) *layoutFinder {
	intern := s.Dump.Syms.Intern
	return &layoutFinder{set: s, module: intern("module"), vllm: intern("llm_request"),
		old: map[trace.Sym]bool{intern("dispatch"): true, intern("dc_dispatch"): true}}
}

// of returns the layout that span i is a sign of, if any.
func (f *layoutFinder) of(i int) layouts {
	span := f.set.Dump.Span(i)
	switch f.set.Kind(i) {
	case request.Gateway:
		return layoutGateway
	case request.Envelope:
		return layoutV1b
	case request.Stage:
		if f.old[span.Name] {
			return oldNames
		}
	case request.Root:
		if span.Name == f.vllm {
			return layoutVLLM
		}
		if _, ok := f.set.Dump.Args.Find(span.Args, f.module); ok {
			return layoutV2
		}
		return layoutV1a
	}
	return 0
}
