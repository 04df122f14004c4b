package assembly

import (
	"math"
	"strconv"

	"github.com/bytedance/sonic"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// attrKeys are the attributes that the rules use.
type attrKeys struct {
	module, rid, room, label, pid, hostID  trace.Sym
	tp, pp, dp, reason, message            trace.Sym
	requestID, ttft, e2e, model, finish    trace.Sym
	prompt, completion, cached             trace.Sym
	inQueue, inPrefill, inDecode           trace.Sym
	gatewayRequest, httpStatus, method     trace.Sym
	hostName, processPID, vllmPID, podName trace.Sym
	decodeCount, batchSize, forwardMode    trace.Sym
	accepted, retractions                  trace.Sym
	schedule, retract, sending, sendingOne trace.Sym // names of events
	dispatch, dcDispatch                   trace.Sym // stages that were later renamed: see stages
	language, sdk, version, release        trace.Sym
}

func newAttrKeys(t *trace.Symbols) attrKeys {
	k := t.Intern
	return attrKeys{
		module: k("module"), rid: k("rid"), room: k("bootstrap_room"), label: k("thread_label"), pid: k("pid"), hostID: k("host_id"),
		tp: k("tp_rank"), pp: k("pp_rank"), dp: k("dp_rank"), reason: k("reason"), message: k("message"),
		requestID: k("gen_ai.request.id"), ttft: k("gen_ai.latency.time_to_first_token"), e2e: k("gen_ai.latency.e2e"),
		model: k("gen_ai.response.model"), finish: k("gen_ai.response.finish_reasons"),
		prompt: k("gen_ai.usage.prompt_tokens"), completion: k("gen_ai.usage.completion_tokens"), cached: k("gen_ai.usage.cached_tokens"), retractions: k("num_retractions"),
		inQueue: k("gen_ai.latency.time_in_queue"), inPrefill: k("gen_ai.latency.time_in_model_prefill"), inDecode: k("gen_ai.latency.time_in_model_decode"),
		gatewayRequest: k("request_id"), httpStatus: k("status_code"), method: k("method"),
		hostName: k("host.name"), processPID: k("process.pid"), vllmPID: k("vllm.process_id"), podName: k("k8s.pod.name"),
		decodeCount: k("decode_ct"), batchSize: k("batch_size"), forwardMode: k("forward_mode"),
		accepted: k("accepted_tokens"),
		schedule: k("schedule"), retract: k("retract"), sending: k("Sending concurrent requests"), sendingOne: k("Sending request"),
		dispatch: k("dispatch"), dcDispatch: k("dc_dispatch"),
		language: k("telemetry.sdk.language"), sdk: k("telemetry.sdk.name"), version: k("telemetry.sdk.version"),
		release: k("service.version"),
	}
}

// argInt reads a whole number, which may be text.
func argInt(a trace.Arg) (int64, bool) {
	switch a.Kind {
	case trace.ArgInt:
		return a.Int(), true
	case trace.ArgUint:
		return int64(a.Uint()), a.Uint() <= math.MaxInt64
	case trace.ArgFloat:
		return int64(a.Float()), a.Float() == math.Trunc(a.Float()) && math.Abs(a.Float()) < 1<<53
	case trace.ArgString:
		n, err := strconv.ParseInt(string(a.Bytes()), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// argSeconds converts a duration in seconds to ns; Unknown if it is not a duration.
func argSeconds(a trace.Arg) int64 {
	var s float64
	switch a.Kind {
	case trace.ArgFloat:
		s = a.Float()
	case trace.ArgInt: // the Collector writes whole doubles as integers
		s = float64(a.Int())
	case trace.ArgString: // Zipkin's tags hold all numbers as text
		var err error
		if s, err = strconv.ParseFloat(string(a.Bytes()), 64); err != nil {
			return request.Unknown
		}
	default:
		return request.Unknown
	}
	if !(s >= 0 && s < 1e9) {
		return request.Unknown
	}
	return int64(math.Round(s * 1e9))
}

// roomOf reads a bootstrap room: hex since v2, a decimal number or the word None in v1a. "" is no room.
func roomOf(a trace.Arg) []byte {
	if a.Kind == trace.ArgInt {
		return []byte(request.RoomText(strconv.FormatUint(uint64(a.Int()), 10)))
	}
	return []byte(request.RoomText(string(a.Bytes())))
}

// finishOf returns the first element of gen_ai.response.finish_reasons, a JSON list in a string (or, from
// other producers, a real list).
func finishOf(a trace.Arg) string {
	if a.Kind == trace.ArgArray {
		for e := range a.Elems {
			return string(e.Bytes())
		}
		return ""
	}
	var reasons []string
	if sonic.Unmarshal(a.Bytes(), &reasons) != nil || len(reasons) == 0 {
		return string(a.Bytes())
	}
	return reasons[0]
}

func argRank(a trace.Arg) int16 {
	if n, ok := argInt(a); ok && n >= 0 && n <= math.MaxInt16 {
		return int16(n)
	}
	return request.Unknown
}
