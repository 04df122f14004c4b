package redact

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// A SecretRule says which attributes may hold a secret.
type SecretRule struct {
	// Name is the end of a name, in words: "api key" matches x-api-key, openaiApiKey, and OPENAI_API_KEY.
	// Numbers are not words: "prompt" matches gen_ai.prompt.0. After a final *, anything may follow; for
	// conversations, except a harmless end.
	Name string
	// When reports whether a value counts; nil is all texts.
	When func(text string) bool
	Why  string
	From string // who writes it
}

const (
	conversation = "prompt, answer or documents of a user"
	credentials  = "credentials"
	environment  = "environment or command line, where keys are passed"
)

// SecretRules are all rules. The first one that matches a name decides.
var SecretRules = slices.Concat(operators, headers, keys, conversations, environments, addresses)

var operators = []SecretRule{
	{"concrete inputs", isProse, conversation, "PyTorch profiler with record_shapes: arguments of operators; numbers and single words stay"},
	{"concrete kwargs", isProse, conversation, "PyTorch profiler with record_shapes"},
	{"kwinputs", isProse, conversation, "PyTorch profiler with record_shapes"},
}

var conversations = []SecretRule{
	{"prompt *", nil, conversation, "OpenTelemetry GenAI until 1.37; OpenLLMetry: gen_ai.prompt.0.content; Vercel AI: ai.prompt.messages"},
	{"prompts *", nil, conversation, "OpenInference: llm.prompts"},
	{"completion *", nil, conversation, "OpenTelemetry GenAI until 1.37; OpenLLMetry: gen_ai.completion.0.content"},
	{"completions *", nil, conversation, "OpenLLMetry: llm.completions"},
	{"message *", nil, conversation, "OpenTelemetry GenAI events: gen_ai.user.message; OpenInference: message.content"},
	{"messages *", nil, conversation, "OpenTelemetry GenAI: gen_ai.input.messages; LiteLLM: llm.openai.messages"},
	{"content *", nil, conversation, "OpenLIT: gen_ai.content.prompt; OpenInference: document.content"},
	{"contents *", nil, conversation, "OpenInference: message.contents"},
	{"input *", nil, conversation, "OpenInference: input.value; OpenLLMetry: traceloop.entity.input; Langfuse, Haystack, Genkit, Braintrust"},
	{"inputs *", nil, conversation, "MLflow: mlflow.spanInputs; LangSmith"},
	{"output *", nil, conversation, "OpenInference: output.value; OpenLLMetry: traceloop.entity.output"},
	{"outputs *", nil, conversation, "MLflow: mlflow.spanOutputs; LangSmith"},
	{"system instructions *", nil, conversation, "OpenTelemetry GenAI from 1.37"},
	{"instructions", nil, conversation, "gateways, agents"},
	{"choice *", nil, conversation, "OpenTelemetry GenAI events: gen_ai.choice"},
	{"choices *", nil, conversation, "LiteLLM: llm.openai.choices"},
	{"llm request", nil, conversation, "Google ADK: gcp.vertex.agent.llm_request"},
	{"llm response", nil, conversation, "Google ADK: gcp.vertex.agent.llm_response"},
	{"llm responses", nil, conversation, "Langtrace"},
	{"agent data", nil, conversation, "Google ADK: gcp.vertex.agent.data"},
	{"request data", nil, conversation, "Logfire"},
	{"response data", nil, conversation, "Logfire"},
	{"image url", nil, conversation, "OpenInference: often the image itself"},
	{"audio url", nil, conversation, "OpenInference: often the sound itself"},
	{"raw request", nil, conversation, "LiteLLM"},
	{"raw response", nil, conversation, "LiteLLM"},
	{"response object", nil, conversation, "Vercel AI: ai.response.object"},
	{"final result", nil, conversation, "Pydantic AI"},
	{"ai value", nil, conversation, "Vercel AI: texts to embed"},
	{"ai values", nil, conversation, "Vercel AI: texts to embed"},
	{"text", nil, conversation, "OpenInference: embedding.text; Vercel AI: ai.response.text; gateways"},
	{"reasoning *", nil, conversation, "Vercel AI: ai.response.reasoning"},
	{"transcript", nil, conversation, "OpenInference: input.audio.transcript"},
	{"question", nil, conversation, "agents"},
	{"answer", nil, conversation, "agents"},
	{"conversation", nil, conversation, "agents"},
	{"history", nil, conversation, "agents: chat_history"},
	{"evaluation explanation", nil, conversation, "OpenTelemetry GenAI"},
	{"stop sequences", nil, conversation, "OpenTelemetry GenAI"},
	{"template variables", nil, conversation, "OpenLLMetry, OpenInference"},
	{"invocation parameters", nil, conversation, "OpenInference: may repeat the messages"},
	{"request parameters", nil, conversation, "Pydantic AI"},
	{"tools *", nil, conversation, "OpenInference: llm.tools.0.tool.json_schema; MLflow"},
	{"functions *", nil, conversation, "OpenLLMetry: llm.request.functions"},
	{"tool definitions *", nil, conversation, "OpenTelemetry GenAI"},
	{"tool description", nil, conversation, "OpenTelemetry GenAI, OpenInference"},
	{"tool parameters *", nil, conversation, "OpenInference"},
	{"tool call *", nil, conversation, "OpenTelemetry GenAI: gen_ai.tool.call.arguments"},
	{"tool calls *", nil, conversation, "OpenLLMetry, Vercel AI"},
	{"tool args", nil, conversation, "agents"},
	{"tool arguments", nil, conversation, "Pydantic AI"},
	{"tool result", nil, conversation, "agents"},
	{"tool results", nil, conversation, "agents"},
	{"tool response", nil, conversation, "Pydantic AI, Google ADK"},
	{"function call *", nil, conversation, "OpenInference: llm.function_call"},
	{"request argument *", nil, conversation, "OpenTelemetry MCP"},
	{"crew tasks", nil, conversation, "CrewAI"},
	{"retrieval *", nil, conversation, "OpenTelemetry GenAI, OpenInference"},
	{"document", nil, conversation, "vector stores; GraphQL"},
	{"documents *", nil, conversation, "OpenInference: retrieval.documents"},
	{"document metadata", nil, conversation, "OpenInference"},
	{"embeddings *", nil, conversation, "OpenInference: embedding.embeddings"},
	{"body *", nil, conversation, "gateways: http.request.body"},
	{"payload *", nil, conversation, "gateways"},
	{"query *", nil, conversation, "vector stores, caches, rerankers; OpenTelemetry HTTP: url.query"},
	{"db statement", nil, conversation, "vector stores and caches"},
	{"operation parameter *", nil, conversation, "OpenTelemetry databases"},
}

// headers are request headers that say who asks, for what, and how urgently, which may distinguish slow
// requests from others.
var headers = func() (rules []SecretRule) {
	for _, whose := range []string{"tenant", "tenant id", "tenant name", "organization", "organization id", "org", "org id", "team", "team id", "customer", "customer id",
		"tier", "plan", "priority", "model", "lora", "lora name", "lora path", "adapter", "adapter id", "adapter name"} {
		for _, header := range []string{"header ", "header x ", "headers ", "headers x "} {
			rules = append(rules, SecretRule{header + whose, isNoName, credentials, "gateways: only what looks like credentials, or is more than a name"})
		}
	}
	return rules
}()

var keys = []SecretRule{
	{"header *", nil, credentials, "OpenTelemetry HTTP: http.request.header.authorization"},
	{"headers *", nil, credentials, "gateways"},
	{"request metadata *", nil, credentials, "OpenTelemetry gRPC"},
	{"response metadata *", nil, credentials, "OpenTelemetry gRPC"},
	{"authorization *", nil, credentials, "gateways"},
	{"auth", nil, credentials, "gateways"},
	{"cookie *", nil, credentials, "gateways"},
	{"cookies *", nil, credentials, "gateways"},
	{"api key *", nil, credentials, "gateways"},
	{"apikey *", nil, credentials, "gateways"},
	{"access key *", nil, credentials, "gateways, object stores"},
	{"access key id", nil, credentials, "object stores"},
	{"private key", nil, credentials, "gateways"},
	{"signing key", nil, credentials, "gateways"},
	{"encryption key", nil, credentials, "gateways"},
	{"account key", nil, credentials, "object stores"},
	{"subscription key", nil, credentials, "gateways"},
	{"x signature", nil, credentials, "gateways"},
	{"secret *", nil, credentials, "gateways"},
	{"secrets *", nil, credentials, "gateways"},
	{"password *", nil, credentials, "gateways"},
	{"passwd", nil, credentials, "gateways"},
	{"pwd", nil, credentials, "gateways"},
	{"passphrase", nil, credentials, "gateways"},
	{"credential *", nil, credentials, "gateways"},
	{"credentials *", nil, credentials, "gateways"},
	{"bearer *", nil, credentials, "gateways"},
	{"jwt *", nil, credentials, "gateways"},
	{"token", nil, credentials, "gateways, Hugging Face; counts of tokens are numbers, which stay"},
	{"token value", nil, credentials, "gateways"},
	{"connection string", nil, credentials, "OpenTelemetry until 1.25"},
	{"dsn", nil, credentials, "databases, Sentry"},
	{"webhook url", nil, credentials, "gateways"},
}

var environments = []SecretRule{
	{"environment variable *", nil, environment, "OpenTelemetry process detectors"},
	{"environment variables *", nil, environment, "OpenTelemetry process detectors"},
	{"environment", isProse, environment, "launchers; deployment.environment is a word"},
	{"environ *", nil, environment, "launchers"},
	{"env *", nil, environment, "launchers"},
	{"envs *", nil, environment, "launchers"},
	{"process command", nil, environment, "OpenTelemetry process detectors"},
	{"container command *", nil, environment, "OpenTelemetry container detectors"},
	{"command line *", nil, environment, "OpenTelemetry process detectors"},
	{"command args *", nil, environment, "OpenTelemetry process detectors: --api-key"},
	{"cmdline *", nil, environment, "launchers"},
	{"argv *", nil, environment, "launchers"},
	{"process args *", nil, environment, "launchers"},
	{"launch args *", nil, environment, "launchers"},
	{"server args *", nil, environment, "SGLang: api_key is among them"},
}

var addresses = []SecretRule{
	{"url *", inURL, credentials, "OpenTelemetry HTTP: url.full; what is behind ? or before @"},
	{"uri", inURL, credentials, "gateways"},
	{"http target", inURL, credentials, "OpenTelemetry HTTP until 1.23"},
	{"http path", inURL, credentials, "gateways"},
	{"http route", inURL, credentials, "gateways"},
	{"link", inURL, credentials, "gateways"},
}

// harmless are ends of names that describe the type, form, amount, or failure of something, but not what a
// user said: gen_ai.output.type, tool_call.id, http.request.body.size, exception.message.
var harmless = []string{"type", "types", "id", "name", "names", "version", "count", "size", "length", "len", "bytes", "format", "role", "index",
	"model", "dims", "strides", "shape", "shapes", "dtype", "dtypes", "kind", "status", "code", "language", "encoding", "score", "tokens",
	"finish reason", "finish reasons", "method", "device", "layout", "mode", "rank", "ranks", "url scheme", "url path", "url port", "url domain",
	"query summary", "exception message", "error message", "status message"}

// measures are ends of names of times and rates whose last word alone would mean a credential. Formats that
// write numbers as text store these as text: gen_ai.latency.time_to_first_token.
var measures = []string{"time to first token", "time to last token", "time per output token", "time per token", "latency per token"}

// failureNames are complete names that say why something failed, not what a user said: SGLang's abort has a
// message beside its status code.
var failureNames = []string{"message"}

// inURL reports whether a URL has a query, or a user before its host.
func inURL(s string) bool { return strings.ContainsAny(s, "?@") }

// isProse reports whether an operator's argument is more than a number, a list of numbers, a boolean, or
// one word such as "bicubic".
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

// isNoName reports whether a header holds more than a name of up to three words: a credential or a
// sentence.
func isNoName(s string) bool { return hasCredential(s) || len(strings.Fields(s)) > 3 }

// isNumber reports whether a word is a number such as 1e-05.
func isNumber(word string) bool {
	return strings.Trim(word, "0123456789.+-eEj") == "" && word[0] <= '9'
}

// A class is a kind of attribute.
type class struct {
	name  func(*Redactor, string) string
	learn func(*Redactor, string) // nil if there is nothing to learn
}

// attributes has the class of texts in attributes of spans and arguments of events, by name. Names not
// listed hold free text.
var attributes = func() map[string]class {
	all := map[string]class{}
	for _, group := range []struct {
		class
		keys string
	}{
		{class{(*Redactor).Host, (*Redactor).LearnHost}, "host_id host host.id host.name hostname host_name node k8s.pod.name k8s.node.name k8s.pod.ip net.host.name net.peer.name net.peer.ip " +
			"net.sock.peer.addr server.address client.address network.peer.address network.local.address"},
		{class{(*Redactor).Request, (*Redactor).LearnRequest}, "rid request request_id gen_ai.request.id gen_ai.conversation.id trace_id span_id session.id service.instance.id"},
		{class{(*Redactor).Path, nil}, "kernel_file code.filepath code.file.path process.executable.path process.working_directory log.file.path"},
		// Names that tools and servers assign, rather than users. IDs and paths in them are still replaced.
		{class{(*Redactor).Scrub, nil}, "module thread_label stage status forward_mode category collective communicator mode schedule role service.name service.version " +
			"telemetry.sdk.language telemetry.sdk.name telemetry.sdk.version vllm.instrumenting_module_name " +
			"gen_ai.system gen_ai.provider.name gen_ai.operation.name gen_ai.request.model gen_ai.response.model gen_ai.response.finish_reasons " +
			"http.request.method http.method http.route http.scheme url.scheme url.path method error.type exception.type rpc.system rpc.method rpc.service " +
			"collective_name input_type process_group_name process_group_description process_group_ranks dtype cuda_sync_kind kernel kernel_backend kernel_kwargs " +
			"direction kind trace_name run_by copy_kind src_kind dst_kind memory_kind layout dtypes op " +
			"finding_id finding_kind finding_severity finding_confidence finding_place finding_since finding_until finding_metric finding_unit finding_cost_of " +
			"finding_rids finding_evidence finding_command"},
	} {
		for key := range strings.FieldsSeq(group.keys) {
			all[key] = group.class
		}
	}
	all["reason"] = class{(*Redactor).Reason, nil}
	return all
}()

// Attribute returns the replacement for a text in an attribute or argument of this name. Numbers, booleans,
// and lists of these stay, unless they are IDs.
func (r *Redactor) Attribute(key, text string) string {
	if c, ok := attributes[attributeKey(key)]; ok {
		return c.name(r, text)
	}
	if isNumbers(text) {
		return text
	}
	return r.text(text)
}

func attributeKey(key string) string { return strings.ReplaceAll(strings.ToLower(key), " ", "_") }

// learnAttribute makes Scrub replace the text of an attribute, if attributes of this name are hosts or IDs.
func (r *Redactor) learnAttribute(key, text string) {
	if c := attributes[attributeKey(key)]; c.learn != nil {
		c.learn(r, text)
	}
}

var numbers = lazyregexp.New(`^(?:0x[0-9a-fA-F]{1,16}|[0-9+\-.,:;x*%/ ()\[\]{}'"]|[eE][+-]?[0-9]|True|False|true|false|None|null|nan|inf|ns|us|ms|s|bytes)*$`)

func isNumbers(text string) bool { return len(text) < 4096 && numbers.MatchString(text) }

// reasons are servers' and our own reasons for ending requests; anything that servers add is free text.
var reasons = lazyregexp.New(`^(?:aborted while running|client closed the connection \(HTTP 499\)|error|HTTP [0-9]+|Aborted|abort|have unclosed span, auto closed|The request queue is full\.?|` +
	`The request is aborted by a higher priority request\.?|(?:Prefill bootstrap|Prefill transfer|Decode transfer) failed)`)

// Reason returns the replacement for the reason why a request failed: known reasons of servers stay.
func (r *Redactor) Reason(text string) string {
	known := reasons.FindString(text)
	if rest := text[len(known):]; rest != "" {
		return strings.TrimLeft(known+" "+r.text(rest), " ")
	}
	return known
}
