package redact

import "strings"

// What the texts in attributes of spans and in arguments of events are, by name. All
// that is not listed is free text.
var attributes = func() map[string]func(*Redactor, string) string {
	all := map[string]func(*Redactor, string) string{}
	for _, group := range []struct {
		name func(*Redactor, string) string
		keys string
	}{
		{(*Redactor).Host, "host_id host host.id host.name hostname host_name node k8s.pod.name k8s.node.name k8s.pod.ip net.host.name net.peer.name net.peer.ip " +
			"net.sock.peer.addr server.address client.address network.peer.address network.local.address"},
		{(*Redactor).Request, "rid request request_id gen_ai.request.id gen_ai.conversation.id trace_id span_id session.id service.instance.id"},
		{(*Redactor).Path, "kernel_file code.filepath code.file.path process.executable.path process.working_directory log.file.path"},
		// What tools and servers call things, which a user does not choose. Ids and paths
		// among it are found all the same.
		{(*Redactor).Scrub, "module thread_label stage status forward_mode category collective communicator mode schedule role service.name service.version " +
			"telemetry.sdk.language telemetry.sdk.name telemetry.sdk.version vllm.instrumenting_module_name " +
			"gen_ai.system gen_ai.provider.name gen_ai.operation.name gen_ai.request.model gen_ai.response.model gen_ai.response.finish_reasons " +
			"http.request.method http.method http.route http.scheme url.scheme url.path method error.type exception.type rpc.system rpc.method rpc.service " +
			"collective_name input_type process_group_name process_group_description process_group_ranks dtype cuda_sync_kind kernel kernel_backend kernel_kwargs " +
			"direction kind trace_name run_by copy_kind src_kind dst_kind memory_kind layout dtypes op " +
			"finding_id finding_kind finding_severity finding_confidence finding_place finding_since finding_until finding_metric finding_unit finding_cost_of " +
			"finding_rids finding_evidence finding_command"},
	} {
		for _, key := range strings.Fields(group.keys) {
			all[key] = group.name
		}
	}
	all["reason"] = (*Redactor).Reason
	return all
}()

// Attribute returns what stands for a text in an attribute or argument of this name.
// Numbers, truth values and lists of these stay, unless they are ids.
func (r *Redactor) Attribute(key, text string) string {
	if name := attributes[strings.ReplaceAll(strings.ToLower(key), " ", "_")]; name != nil {
		return name(r, text)
	}
	if isNumbers(text) {
		return text
	}
	return r.Text(text)
}

var numbers = pattern(`^(?:0x[0-9a-fA-F]{1,16}|[0-9+\-.,:;x*%/ ()\[\]{}'"]|[eE][+-]?[0-9]|True|False|true|false|None|null|nan|inf|ns|us|ms|s|bytes)*$`)

func isNumbers(text string) bool { return len(text) < 4096 && numbers().MatchString(text) }

// reasons are why servers end requests; what they add to these is free text.
var reasons = pattern(`^(?:error|HTTP [0-9]+|Aborted|abort|have unclosed span, auto closed|The request queue is full\.?|` +
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
