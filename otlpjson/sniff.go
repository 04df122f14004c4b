package otlpjson

import "bytes"

// onlyOTLP reports whether only OTLP has a key; one such is in the head of any dump, even
// of one whose beginning was rotated away in the middle of a line.
func onlyOTLP(key []byte) bool {
	switch string(key) {
	case "resourceSpans", "resource_spans", "scopeSpans", "scope_spans",
		"startTimeUnixNano", "start_time_unix_nano",
		"resourceLogs", "resourceMetrics", "resourceProfiles", "parentSpanId",
		"instrumentationLibrarySpans":
		return true
	}
	return false
}

// Sniff reports whether a file with the given (decompressed) head is an OTLP dump.
func Sniff(head []byte) bool {
	if sniffFraming(head) != notFramed {
		return true
	}
	// What is between any two quotes may be a key: nobody knows here which of them opens a
	// string. One pass over the head sees them all.
	quote := []byte{'"'}
	_, rest, found := bytes.Cut(head, quote)
	for found {
		var key []byte
		if key, rest, found = bytes.Cut(rest, quote); found && onlyOTLP(key) {
			return true
		}
	}
	return false
}
