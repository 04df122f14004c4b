package redact

import "strings"

// A class is what attributes of some names have in common.
type class struct {
	name  func(*Redactor, string) string
	learn func(*Redactor, string) // nil is nothing to learn
}

// What the texts in attributes of spans and in arguments of events are, by name. All
// that is not listed is free text.
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
		// What tools and servers call things, which a user does not choose. Ids and paths
		// among it are found all the same.
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

// Attribute returns what stands for a text in an attribute or argument of this name.
// Numbers, truth values and lists of these stay, unless they are ids.
func (r *Redactor) Attribute(key, text string) string {
	if c, ok := attributes[attributeKey(key)]; ok {
		return c.name(r, text)
	}
	if isNumbers(text) {
		return text
	}
	return r.Text(text)
}

func attributeKey(key string) string { return strings.ReplaceAll(strings.ToLower(key), " ", "_") }

// LearnAttribute makes Scrub replace the text of an attribute, if attributes of this name are
// hosts or ids.
func (r *Redactor) LearnAttribute(key, text string) {
	if c := attributes[attributeKey(key)]; c.learn != nil {
		c.learn(r, text)
	}
}

var numbers = pattern(`^(?:0x[0-9a-fA-F]{1,16}|[0-9+\-.,:;x*%/ ()\[\]{}'"]|[eE][+-]?[0-9]|True|False|true|false|None|null|nan|inf|ns|us|ms|s|bytes)*$`)

func isNumbers(text string) bool { return len(text) < 4096 && numbers().MatchString(text) }

// reasons are why servers end requests, and why we say that they ended; what servers add to these
// is free text.
var reasons = pattern(`^(?:aborted while running|client closed the connection \(HTTP 499\)|error|HTTP [0-9]+|Aborted|abort|have unclosed span, auto closed|The request queue is full\.?|` +
	`The request is aborted by a higher priority request\.?|(?:Prefill bootstrap|Prefill transfer|Decode transfer) failed)`)

// Reason returns what stands for the reason why a request failed: what servers are
// known to say stays.
func (r *Redactor) Reason(text string) string {
	known := reasons().FindString(text)
	if rest := text[len(known):]; rest != "" {
		return strings.TrimLeft(known+" "+r.Text(rest), " ")
	}
	return known
}
