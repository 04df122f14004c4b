package redact

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name, value string
		holds       bool
	}{
		{"gen_ai.prompt.0.content", "hello", true},
		{"gen_ai.completion.0.content", "hello", true},
		{"gen_ai.input.messages", "[]", true},
		{"input.value", "hello", true},
		{"http.request.header.authorization", "Bearer x", true},
		{"Authorization", "Bearer x", true},
		{"x-api-key", "sk-1", true},
		{"http.request.header.X-API-Key", "sk-1", true},
		{"http.request.header.x-tenant-id", "acme", false},
		{"http.request.header.x-priority", "batch", false},
		{"http.request.header.x-tenant-id", "Bearer abc12345", true},
		{"http.request.header.x-tenant-name", "Acme Rockets Inc.", false},
		{"http.request.header.x-tenant-name", "tell me a story", true},
		{"http.request.header.x-tenant-token", "acme", true},
		{"request.headers", "a: b", true},
		{"process.command_args", "serve --api-key x", true},
		{"process.environment_variable.HF_TOKEN", "hf_1", true},
		{"url.full", "https://x/y?key=1", true},
		{"url.full", "https://u:p@x/y", true},
		{"Concrete Inputs", "tell me a story", true},
		{"Concrete Inputs", "sk-abcdefghijklmnopqrstuvwxyz", true},
		{"mlflow.spanInputs", "{}", true},
		{"ai.response.toolCalls", "[]", true},
		{"langfuse.observation.input", "hello", true},
		{"reranker.input_documents.0.document.content", "hello", true},
		{"openaiAPIKey", "x", true},
		{"AWS_SECRET_ACCESS_KEY", "x", true},
		{"db.connectionString", "x", true},
		{"http.request.header.x-session-id", "x", true},
		{"systemPrompt", "hello", true},
		{"prompt0", "hello", true},
		{"prompt0Value", "hello", true},
		{"server.url", "http://u:p@x", true},

		{"url.full", "https://x/y", false},
		{"http.target", "/generate", false},
		{"Concrete Inputs", "[8192, 1]", false},
		{"Concrete Inputs", "1e-05", false},
		{"Concrete Inputs", "[True, False]", false},
		{"Concrete Inputs", "bicubic", false},
		{"gen_ai.usage.prompt_tokens", "12", false},
		{"gen_ai.latency.time_to_first_token", "0.657", false},
		{"gen_ai.server.time_per_output_token", "0.02", false},
		{"x-first-token", "abc", true},
		{"gen_ai.usage.completion_tokens", "12", false},
		{"gen_ai.request.id", "7ca0", false},
		{"gen_ai.output.type", "json", false},
		{"gen_ai.response.finish_reasons", "stop", false},
		{"rid", "7ca0", false},
		{"host_id", "5f1d", false},
		{"reason", "The request queue is full.", false},
		{"Process Group Name", "tp:0", false},
		{"decode_ct", "12", false},
		{"tokens", "12", false},
		{"Input type", "float", false},
		{"Input Dims", "[1]", false},
		{"input.mime_type", "text/plain", false},
		{"gen_ai.prompt.name", "summarize", false},
		{"gen_ai.conversation.id", "conv-1", false},
		{"llm.input_messages.0.message.role", "user", false},
		{"exception.message", "out of memory", false},
		{"message", "The request is aborted by a higher priority request.", false}, {"message", "Bearer sk-0123456789abcdef0123456789abcdef", true},
		{"deployment.environment", "production", false},
		{"decode_url", "http://10.0.0.12:30000", false},
		{"tokenizer", "llama", false},
		{"monkey", "x", false},
	} {
		test := SecretIn(c.name)
		if got := test != nil && test(c.value); got != c.holds {
			t.Errorf("%s = %q: %v, want %v", c.name, c.value, got, c.holds)
		}
	}
}

func TestFilterHolds(t *testing.T) {
	syms := trace.NewSymbols()
	f := NewFilter(syms)
	key, inner := syms.Intern("request"), syms.Intern("authorization")
	for _, c := range []struct {
		name  string
		list  trace.ArgList
		holds bool
	}{
		{"text", trace.ArgList(nil).String(inner, "Bearer x"), true},
		{"empty text", trace.ArgList(nil).String(inner, ""), false},
		{"number", trace.ArgList(nil).Int(inner, 7), false},
		{"within a dictionary", trace.ArgList(nil).Dict(key, trace.ArgList(nil).String(inner, "Bearer x")), true},
		{"list of texts", trace.ArgList(nil).Array(inner, trace.ArgList(nil).Int(0, 1).String(0, "x")), true},
		{"dictionary below", trace.ArgList(nil).Dict(inner, trace.ArgList(nil).String(key, "x")), true},
		{"harmless", trace.ArgList(nil).Dict(key, trace.ArgList(nil).String(key, "x")), false},
		{"by its looks", trace.ArgList(nil).String(key, "Authorization: Bearer abc12345"), true},
		{"JSON", trace.ArgList(nil).String(key, `{"n": 1, "messages": [{"role": "user"}]}`), true},
		{"Python", trace.ArgList(nil).String(key, `{'n': 1, 'systemPrompt': 'be kind'}`), true},
		{"harmless JSON", trace.ArgList(nil).String(key, `{"role": "user", "tokens": "12", "input": 7}`), false},
	} {
		if got := f.Holds(c.list); got != c.holds {
			t.Errorf("%s: %v, want %v", c.name, got, c.holds)
		}
	}
}

// SecretRules are in the normal form in which names are compared.
func TestRulesAreNormal(t *testing.T) {
	for _, r := range SecretRules {
		if name := strings.TrimSuffix(r.Name, " *"); wordsOf(name) != " "+name+" " || r.Why == "" || r.From == "" {
			t.Errorf("rule %q", r.Name)
		}
	}
}
