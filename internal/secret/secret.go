// Package secret knows which attributes of spans and arguments of events may hold what
// must not leave an incident with its timeline: prompts and answers, credentials,
// environments and command lines. Readers leave those out unless the user wants them.
//
// Only texts are left out, at any depth: numbers and truth values tell nothing. The
// rules go by names, since a prompt looks like any other text. What nobody can know by
// its name, such as an NVTX range that an application calls by a prompt, stays.
package secret

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// A Rule says which attributes may hold a secret. Names are compared in lower case,
// with "-" and " " as "_".
type Rule struct {
	// Name is a whole name, or where it ends with ".*" all that begin so, or where it
	// begins with "*." all whose last part it is.
	Name string
	// When says which values are meant; nil is all texts.
	When func(text string) bool
	Why  string
	From string // who writes it
}

const (
	conversation = "prompt, answer or documents of a user"
	credentials  = "credentials"
	environment  = "environment or command line, where keys are passed"
)

// Rules are all rules. A name that several are about is left out by any of them.
var Rules = []Rule{
	{"gen_ai.prompt", nil, conversation, "OpenTelemetry GenAI until 1.37"},
	{"gen_ai.prompt.*", nil, conversation, "OpenLLMetry: gen_ai.prompt.0.content"},
	{"gen_ai.completion", nil, conversation, "OpenTelemetry GenAI until 1.37"},
	{"gen_ai.completion.*", nil, conversation, "OpenLLMetry: gen_ai.completion.0.content"},
	{"gen_ai.content.*", nil, conversation, "OpenTelemetry GenAI events"},
	{"gen_ai.event.content", nil, conversation, "OpenTelemetry GenAI events"},
	{"gen_ai.input.*", nil, conversation, "OpenTelemetry GenAI from 1.37: gen_ai.input.messages"},
	{"gen_ai.output.messages", nil, conversation, "OpenTelemetry GenAI from 1.37"}, // gen_ai.output.type is harmless
	{"gen_ai.system_instructions", nil, conversation, "OpenTelemetry GenAI from 1.37"},
	{"gen_ai.tool.call.arguments", nil, conversation, "OpenTelemetry GenAI"},
	{"gen_ai.tool.call.result", nil, conversation, "OpenTelemetry GenAI"},
	{"gen_ai.tool.definitions", nil, conversation, "OpenTelemetry GenAI"},
	{"gen_ai.retrieval.*", nil, conversation, "OpenTelemetry GenAI"},
	{"llm.prompts", nil, conversation, "OpenInference, OpenLLMetry"},
	{"llm.prompts.*", nil, conversation, "OpenInference, OpenLLMetry"},
	{"llm.completions", nil, conversation, "OpenLLMetry"},
	{"llm.completions.*", nil, conversation, "OpenLLMetry"},
	{"llm.input_messages.*", nil, conversation, "OpenInference"},
	{"llm.output_messages.*", nil, conversation, "OpenInference"},
	{"llm.prompt_template.*", nil, conversation, "OpenInference"},
	{"input.value", nil, conversation, "OpenInference"},
	{"output.value", nil, conversation, "OpenInference"},
	{"retrieval.documents.*", nil, conversation, "OpenInference"},
	{"embedding.embeddings.*", nil, conversation, "OpenInference"},
	{"traceloop.entity.input", nil, conversation, "OpenLLMetry"},
	{"traceloop.entity.output", nil, conversation, "OpenLLMetry"},
	{"mcp.request.argument.*", nil, conversation, "OpenTelemetry MCP"},
	{"*.prompt", nil, conversation, "gateways: request.prompt, body.prompt"},
	{"*.completion", nil, conversation, "gateways"},
	{"*.messages", nil, conversation, "gateways: request.messages"},
	{"*.input_text", nil, conversation, "gateways"},
	{"*.output_text", nil, conversation, "gateways"},
	{"*.body", nil, conversation, "gateways: http.request.body"},
	{"*.payload", nil, conversation, "gateways"},
	{"http.request.body.*", nil, conversation, "gateways"},
	{"http.response.body.*", nil, conversation, "gateways"},
	{"db.query.text", nil, conversation, "vector stores and caches"},
	{"db.statement", nil, conversation, "vector stores and caches"},
	{"db.query.parameter.*", nil, conversation, "vector stores and caches"},

	{"http.request.header.*", nil, credentials, "OpenTelemetry HTTP: Authorization, Cookie"},
	{"http.response.header.*", nil, credentials, "OpenTelemetry HTTP: Set-Cookie"},
	{"rpc.grpc.request.metadata.*", nil, credentials, "OpenTelemetry gRPC"},
	{"rpc.grpc.response.metadata.*", nil, credentials, "OpenTelemetry gRPC"},
	{"rpc.request.metadata.*", nil, credentials, "OpenTelemetry gRPC"},
	{"rpc.response.metadata.*", nil, credentials, "OpenTelemetry gRPC"},
	{"*.headers", nil, credentials, "gateways"},
	{"*.authorization", nil, credentials, "gateways"},
	{"*.proxy_authorization", nil, credentials, "gateways"},
	{"*.cookie", nil, credentials, "gateways"},
	{"*.cookies", nil, credentials, "gateways"},
	{"*.set_cookie", nil, credentials, "gateways"},
	{"*.api_key", nil, credentials, "gateways"},
	{"*.apikey", nil, credentials, "gateways"},
	{"*.x_api_key", nil, credentials, "gateways"},
	{"*.access_key", nil, credentials, "gateways, object stores"},
	{"*.secret_key", nil, credentials, "gateways, object stores"},
	{"*.private_key", nil, credentials, "gateways"},
	{"*.secret", nil, credentials, "gateways"},
	{"*.client_secret", nil, credentials, "gateways"},
	{"*.password", nil, credentials, "gateways"},
	{"*.passwd", nil, credentials, "gateways"},
	{"*.credential", nil, credentials, "gateways"},
	{"*.credentials", nil, credentials, "gateways"},
	{"*.bearer", nil, credentials, "gateways"},
	{"*.token", nil, credentials, "gateways; counts of tokens are numbers, which stay"},
	{"*.access_token", nil, credentials, "gateways"},
	{"*.auth_token", nil, credentials, "gateways"},
	{"*.id_token", nil, credentials, "gateways"},
	{"*.refresh_token", nil, credentials, "gateways"},
	{"*.session_token", nil, credentials, "gateways"},
	{"*.hf_token", nil, credentials, "Hugging Face"},
	{"db.connection_string", inURL, credentials, "OpenTelemetry until 1.25"},
	{"url.full", inURL, credentials, "OpenTelemetry HTTP: what is behind ? or before @"},
	{"url.query", nil, credentials, "OpenTelemetry HTTP"},
	{"http.url", inURL, credentials, "OpenTelemetry HTTP until 1.23"},
	{"http.target", inURL, credentials, "OpenTelemetry HTTP until 1.23"},

	{"process.environment_variable.*", nil, environment, "OpenTelemetry process detectors"},
	{"process.command", nil, environment, "OpenTelemetry process detectors"},
	{"process.command_line", nil, environment, "OpenTelemetry process detectors"},
	{"process.command_args", nil, environment, "OpenTelemetry process detectors: --api-key"},
	{"process.command_args.*", nil, environment, "OpenTelemetry process detectors"},
	{"container.command*", nil, environment, "OpenTelemetry container detectors"},
	{"*.env", nil, environment, "launchers"},
	{"*.environ", nil, environment, "launchers"},
	{"*.cmdline", nil, environment, "launchers"},

	{"concrete_inputs", isProse, conversation, "PyTorch profiler with record_shapes: arguments of operators; numbers and single words stay"},
	{"concrete_kwargs", isProse, conversation, "PyTorch profiler with record_shapes"},
	{"kwinputs", isProse, conversation, "PyTorch profiler with record_shapes"},
}

// inURL tells whether an address has a query, or a user before its host.
func inURL(s string) bool { return strings.ContainsAny(s, "?@") }

// isProse tells whether an argument of an operator is more than a number, a list of
// numbers, a truth value or one word such as "bicubic".
func isProse(s string) bool {
	words := 0
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(" ,;()[]{}:\t\n'\"", r) }) {
		letters := strings.ContainsFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f })
		if !letters || slices.Contains([]string{"True", "False", "None", "true", "false", "nan", "inf", "-inf"}, word) || isNumber(word) {
			continue
		}
		if words++; words > 1 || len(word) > 20 {
			return true
		}
	}
	return false
}

// isNumber tells whether a word is one such as 1e-05.
func isNumber(word string) bool {
	return strings.Trim(word, "0123456789.+-eEj") == "" && word[0] <= '9'
}

// A Test tells whether a text may be a secret; nil is for names that hold none.
type Test func(text string) bool

// Of returns the test for what an attribute of this name holds.
func Of(name string) Test {
	name = strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(name))
	last := "*." + name[strings.LastIndexAny(name, "./")+1:]
	var tests []Test
	for _, r := range Rules {
		begin, prefix := strings.CutSuffix(r.Name, "*")
		if r.Name == name || r.Name == last || prefix && strings.HasPrefix(name, begin) {
			if r.When == nil {
				return func(string) bool { return true }
			}
			tests = append(tests, r.When)
		}
	}
	if tests == nil {
		return nil
	}
	return func(text string) bool { return slices.ContainsFunc(tests, func(t Test) bool { return t(text) }) }
}

// A Filter finds secrets in lists of arguments. Each goroutine has its own.
type Filter struct {
	syms  *trace.Symbols
	known map[trace.Sym]Test
}

// NewFilter returns a filter for names among syms.
func NewFilter(syms *trace.Symbols) *Filter {
	return &Filter{syms: syms, known: map[trace.Sym]Test{}}
}

// Of returns the test of the name.
func (f *Filter) Of(name trace.Sym) Test {
	t, ok := f.known[name]
	if !ok {
		t = Of(f.syms.Name(name))
		if len(f.known) < maxKnown {
			f.known[name] = t
		}
	}
	return t
}

// Name returns the name itself.
func (f *Filter) Name(name trace.Sym) string { return f.syms.Name(name) }

// maxKnown bounds what a filter remembers: names repeat, unless they are noise.
const maxKnown = 1 << 16

// Holds tells whether any argument of an encoded list may hold a secret: by its name,
// or by that of an entry inside.
func (f *Filter) Holds(list trace.ArgList) bool {
	for a := range list.All() {
		if f.holds(a, nil) {
			return true
		}
	}
	return false
}

// holds tells whether a, inside what outer is the test of, may hold a secret.
func (f *Filter) holds(a trace.Arg, outer Test) bool {
	test := outer
	if test == nil && a.Key != 0 {
		test = f.Of(a.Key)
	}
	switch a.Kind {
	case trace.ArgString:
		return test != nil && len(a.Bytes()) > 0 && test(string(a.Bytes()))
	case trace.ArgArray, trace.ArgDict:
		for e := range a.Elems {
			if f.holds(e, test) {
				return true
			}
		}
	}
	return false
}
