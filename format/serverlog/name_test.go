package serverlog

import "testing"

// Pieces of a rotated log are from one server; pods of a set are several.
func TestServerName(t *testing.T) {
	for name, want := range map[string]string{
		"decode-0.log": "decode-0", "decode-1.log": "decode-1", "d/decode-1.log.2.gz": "d/decode-1", "server-a.log-20260822": "server-a", "server-a.log.1": "server-a",
		"a.1.log": "a", "a-2026-08-22T14.log.zst": "a", "pod-03749140.log": "pod-03749140", "a-20260822.log": "a", "a.log-3": "a", "node7/server.log": "node7",
	} {
		if got := serverName(name); got != want {
			t.Errorf("%s is the log of %q, want %q", name, got, want)
		}
	}
}
