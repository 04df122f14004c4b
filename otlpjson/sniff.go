package otlpjson

import "bytes"

// marks are keys that only OTLP has; one of them is in the head of any dump,
// even of one whose beginning was rotated away in the middle of a line.
var marks = [][]byte{
	[]byte(`"resourceSpans"`), []byte(`"resource_spans"`), []byte(`"scopeSpans"`), []byte(`"scope_spans"`),
	[]byte(`"startTimeUnixNano"`), []byte(`"start_time_unix_nano"`),
	[]byte(`"resourceLogs"`), []byte(`"resourceMetrics"`), []byte(`"resourceProfiles"`), []byte(`"parentSpanId"`),
	[]byte(`"instrumentationLibrarySpans"`),
}

// Sniff reports whether a file with the given (decompressed) head is an OTLP dump.
func Sniff(head []byte) bool {
	if sniffFraming(head) != notFramed {
		return true
	}
	for _, m := range marks {
		if bytes.Contains(head, m) {
			return true
		}
	}
	return false
}
