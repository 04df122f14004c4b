package errortext

import (
	"strings"
	"testing"
)

// Messages are kept up to the first quoted text; whole messages are kept only from code that never sees prompts.
func TestSaid(t *testing.T) {
	for _, test := range []struct{ line, source, want string }{
		{"Cannot render 'CANARY'", "serving_chat.py", "Cannot render"},
		{"Cannot parse input: CANARY", "", "Cannot parse input"},
		{"Disk 3 of 'pool' is gone", "disk.py", "Disk 3 of 'pool' is gone"},
		{"cannot send {CANARY}: Connection refused", "", "cannot send: connection refused"},
		{"'CANARY'", "", ""},
	} {
		if got := Said([]byte(test.line), test.source); got != test.want {
			t.Errorf("%q of %q: kept %q, want %q", test.line, test.source, got, test.want)
		}
	}
}

// An exception is described by its name, and by its message only if that never quotes a request.
func TestExceptionText(t *testing.T) {
	for _, test := range []struct{ line, name, want string }{
		{"ValueError: CANARY", "ValueError", "ValueError"},
		{"torch.OutOfMemoryError: CUDA out of memory", "torch.OutOfMemoryError", "torch.OutOfMemoryError: CUDA out of memory"},
		{"ValueError: The model's max seq len (9) is larger", "ValueError", "ValueError: The model's max seq len (9) is larger"},
		{"zmq.error.Again: Resource temporarily unavailable", "zmq.error.Again", "zmq.error.Again"},
		{"all is well", "", ""},
	} {
		name := ExceptionName([]byte(test.line))
		if name != test.name {
			t.Errorf("%q: named %q, want %q", test.line, name, test.name)
		}
		if name != "" {
			if got := ExceptionText(name, []byte(test.line)); got != test.want || strings.Contains(got, "CANARY") {
				t.Errorf("%q: kept %q, want %q", test.line, got, test.want)
			}
		}
	}
}
