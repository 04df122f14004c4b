package requestjson

import (
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// FuzzZipkin reads arbitrary data: each span that is added has an identity and a time, and others
// are reported with a position in the file.
func FuzzZipkin(f *testing.F) {
	f.Add(`[[{"traceId":"1f","id":"2f","parentId":"3f","name":"x","kind":"SERVER","timestamp":1787000000000000,"duration":5,
		"localEndpoint":{"serviceName":"sglang"},"annotations":[{"timestamp":1787000000000001,"value":"x|{\"n\":9007199254740993,\"f\":0.5}|0"}],
		"tags":{"error":"true","a":"0.5","otlp.link.0":"1f|4f||{}|0"}}]]`)
	f.Add(`{"traceId":1}[]{"id":"1"`)
	f.Fuzz(func(t *testing.T, data string) { testset.CheckSpans(t, readZipkin, data) })
}
