package beside

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// msg concatenates fields into a message.
func msg(fields ...[]byte) (b []byte) {
	for _, f := range fields {
		b = append(b, f...)
	}
	return b
}

func in(n protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
}
func str(n protowire.Number, s string) []byte { return in(n, []byte(s)) }
func num(n protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), x)
}
func fix(n protowire.Number, x uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, n, protowire.Fixed64Type), x)
}
func flt(n protowire.Number, x float64) []byte { return fix(n, math.Float64bits(x)) }

// TestFromProto compares converted Collector messages with their protobuf JSON mapping, written by hand.
func TestFromProto(t *testing.T) {
	pod := in(1, in(1, msg(str(1, "k8s.pod.name"), in(2, str(1, "vllm-0")))))
	wrap := func(record []byte) []byte { return in(1, msg(pod, in(2, msg(in(1, str(1, "s")), in(2, record))))) }
	const resource = `"resource":{"attributes":[{"key":"k8s.pod.name","value":{"stringValue":"vllm-0"}}]}`
	packed := protowire.AppendFixed64(protowire.AppendFixed64(nil, 3), 1)
	bounds := protowire.AppendFixed64(nil, math.Float64bits(0.5))
	for _, tt := range []struct {
		name   string
		record []byte
		signal Signal
		want   string
	}{
		{"log", msg(fix(11, 1787007200000000001), num(2, 17), str(3, "ERROR"), in(5, str(1, "no memory\nleft")), in(6, msg(str(1, "n"), in(2, num(3, math.MaxUint64))))), Logs,
			`{"resourceLogs":[{` + resource + `,"scopeLogs":[{"scope":{"name":"s"},"logRecords":[{"observedTimeUnixNano":"1787007200000000001","severityNumber":17,"severityText":"ERROR",` +
				`"body":{"stringValue":"no memory\nleft"},"attributes":[{"key":"n","value":{"intValue":"-1"}}]}]}]}]}`},
		{"gauge", msg(str(1, "vllm:num_requests_running"), in(5, in(1, msg(fix(3, 5), flt(4, 12.5))))), Metrics,
			`{"resourceMetrics":[{` + resource + `,"scopeMetrics":[{"scope":{"name":"s"},"metrics":[{"name":"vllm:num_requests_running","gauge":{"dataPoints":[{"timeUnixNano":"5","asDouble":12.5}]}}]}]}]}`},
		{"histogram", msg(str(1, "h"), in(9, msg(in(1, msg(fix(3, 5), fix(4, 4), flt(5, 2), in(6, packed), in(7, bounds))), num(2, 1)))), Metrics,
			`{"resourceMetrics":[{` + resource + `,"scopeMetrics":[{"scope":{"name":"s"},"metrics":[{"name":"h","histogram":{"dataPoints":[{"timeUnixNano":"5","count":"4","sum":2,` +
				`"bucketCounts":["3","1"],"explicitBounds":[0.5]}],"aggregationTemporality":1}}]}]}]}`},
		{"exponential", msg(str(1, "e"), in(10, in(1, msg(fix(3, 5), fix(4, 2), num(6, protowire.EncodeZigZag(-1)), in(8, msg(num(1, protowire.EncodeZigZag(-2)), in(2, []byte{1, 1}))))))), Metrics,
			`{"resourceMetrics":[{` + resource + `,"scopeMetrics":[{"scope":{"name":"s"},"metrics":[{"name":"e","exponentialHistogram":{"dataPoints":[{"timeUnixNano":"5","count":"2","scale":-1,` +
				`"positive":{"offset":-2,"bucketCounts":["1","1"]}}]}}]}]}]}`},
	} {
		signal, got, ok := FromProto(wrap(tt.record))
		var is, want any
		if err := json.Unmarshal(got, &is); !ok || err != nil {
			t.Fatalf("%s: %s, %v, %v", tt.name, got, ok, err)
		}
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		if signal != tt.signal || !reflect.DeepEqual(is, want) {
			t.Errorf("%s: signal %d\n%s\nnot\n%s", tt.name, signal, got, tt.want)
		}
	}
	span := msg(str(1, "0123456789abcdef"), str(2, "01234567"), str(5, "POST"), fix(7, 1), fix(8, 2))
	if _, _, ok := FromProto(wrap(span)); ok {
		t.Error("a span is taken for something else")
	}
}
