package requestjson

import (
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// FuzzJaeger reads arbitrary data: each span that is added has an identity and a time, and others
// are reported with a position in the file.
func FuzzJaeger(f *testing.F) {
	f.Add(`{"data":[{"traceID":"1f","spans":[{"traceID":"1f","spanID":"2f","operationName":"Req 1","startTime":1787000000000000,"duration":5,
		"references":[{"refType":"CHILD_OF","traceID":"1f","spanID":"3f"}],"tags":[{"key":"n","type":"int64","value":9007199254740993},
		{"key":"error","type":"bool","value":true}],"logs":[{"timestamp":1787000000000001,"fields":[{"key":"event","type":"string","value":"x"}]}],
		"processID":"p"}],"processes":{"p":{"serviceName":"sglang","tags":[]}}}],"total":0}`)
	f.Add(`[{"traceID":"1","spans":[{"spanID":1}],"processes":[]},{}`)
	f.Fuzz(func(t *testing.T, data string) { testset.CheckSpans(t, readJaeger, data) })
}
