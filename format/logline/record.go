package logline

import (
	"bytes"
	"slices"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// Keys of JSON records that programs and log stores make of lines: Dynamo, Go and other programs that log in
// JSON, journald, Loki, Google's, Amazon's and Microsoft's, Elasticsearch, and docker. For a store, the first
// key of the list that an object has counts.
var (
	TimeKeys    = []string{"__REALTIME_TIMESTAMP", "@timestamp", "timestamp", "time", "TimeGenerated", "date", "ts", "asctime"}
	LevelKeys   = []string{"level", "severity", "levelname", "log.level"}
	MessageKeys = []string{"line", "log", "textPayload", "MESSAGE", "@message", "LogMessage", "LogEntry", "message", "msg", "body"}
	ErrorKeys   = []string{"error", "err"} // the error that a message is about, in Go
	sourceKeys  = []string{"caller"}       // the source file, in Go
)

// A Record is a line in JSON. Its fields are raw, strings without their quotes; nil if missing.
type Record struct {
	Time    []byte // a stamp, or a number since 1970
	Level   []byte
	Message []byte
	Error   []byte // the error that the message is about
	Source  []byte // the source file
}

// IsRecord reports whether b begins with the record of a line: an object with a message, and a time or a level.
func IsRecord(b []byte) bool {
	const looked = 1000
	has := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return bytes.Contains(b[:min(len(b), looked)], []byte(`"`+key+`":`)) })
	}
	return len(b) > 0 && b[0] == '{' && has(MessageKeys) && (has(TimeKeys) || has(LevelKeys))
}

// RecordOf parses such a record; of several members of one kind, the first one counts.
func RecordOf(b []byte) (x Record, ok bool) {
	_, err := jsonscan.Members(b, 0, func(key, value []byte) {
		if inner := string(key); (inner == "attributes" || inner == "_source") && len(value) > 0 && value[0] == '{' { // of Datadog, Elasticsearch
			if within, ok := RecordOf(value); ok && x.Message == nil {
				x = within
			}
			return
		}
		text := jsonscan.Quoted(value)
		for _, member := range [...]struct {
			keys []string
			to   *[]byte
		}{{LevelKeys, &x.Level}, {MessageKeys, &x.Message}, {ErrorKeys, &x.Error}, {sourceKeys, &x.Source}} {
			if text != nil && *member.to == nil && slices.Contains(member.keys, string(key)) {
				*member.to = text
			}
		}
		if x.Time == nil && slices.Contains(TimeKeys, string(key)) {
			if x.Time = text; text == nil {
				x.Time = value // a number
			}
		}
	})
	return x, err == nil && x.Message != nil
}
