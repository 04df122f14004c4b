package inputs

import "testing"

// TestFirstKey: for a file that begins like a common format, that format is tried first.
func TestFirstKey(t *testing.T) {
	for head, want := range map[string]string{
		`{"schemaVersion": 1, "distributedInfo": {"pg_config": [], "pg_status": {}}, "collective_seq_id": 3`: "Chrome JSON (PyTorch profiler)",
		`{"distributedInfo": {"pg_config": [], "pg_status": {}}, "collective_seq_id": 3`:                     "PyTorch flight recorder",
		"{\n\t\"resourceSpans\" : [{\"resource\": {}, \"traceID\": 1, \"operationName\": 2":                  "OTLP",
		`{"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json"}]}`:   "",
		`{"schemaVersion": 2, "events": [{"apiVersion": "v1", "reason": "Killing", "kind": "Event"}]}`:       "Kubernetes events",
	} {
		got := ""
		if f := sniff([]byte(head)); f != nil {
			got = f.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", head, got, want)
		}
	}
}
