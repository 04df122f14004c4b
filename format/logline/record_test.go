package logline

import "testing"

// A record has a message, and a time or a level, under any of their known keys. Of two keys for the same field, the first counts.
func TestRecordOf(t *testing.T) {
	for _, test := range []struct {
		line     string
		is       bool
		at, says string
	}{
		{`{"ts":1756000000.5,"level":"error","msg":"dial","error":"refused"}`, true, "1756000000.5", "dial"},
		{`{"MESSAGE":"ends","__REALTIME_TIMESTAMP":"17"}`, true, "17", "ends"},
		{`{"severity":"INFO","msg":"first","message":"second"}`, true, "", "first"},
		{`{"id":"a","attributes":{"timestamp":"2026-03-04T10:22:12Z","message":"of Datadog","host":"b"}}`, true, "2026-03-04T10:22:12Z", "of Datadog"},
		{`{"level":"info","text":"no message"}`, false, "", ""},
		{`{"msg":"neither time nor level"}`, false, "", "neither time nor level"},
	} {
		x, _ := RecordOf([]byte(test.line))
		if is := IsRecord([]byte(test.line)); is != test.is || string(x.Time) != test.at || string(x.Message) != test.says {
			t.Errorf("%s: record %v, at %q says %q", test.line, is, x.Time, x.Message)
		}
	}
}
