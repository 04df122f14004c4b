package testinput

import (
	"runtime/metrics"
	"testing"
)

// Allocated returns how many bytes this process has ever allocated, those included that
// were given back.
func Allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// BoundMemory fails a test if f allocates more than so many bytes.
func BoundMemory(t *testing.T, most uint64, f func()) {
	t.Helper()
	before := Allocated()
	f()
	if n := Allocated() - before; n > most {
		t.Errorf("allocated %d MB", n>>20)
	}
}
