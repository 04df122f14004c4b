package requestjson

import "testing"

// The trace id of a span is found at its first occurrence, with any white space.
func TestTraceOf(t *testing.T) {
	for text, want := range map[string]uint64{
		`{"traceID":"00000000000000000000000000000abc","spanID":"1"}`: 0xabc,
		"{\n  \"traceID\" : \"abc\",\n  \"spanID\" : \"1\"\n}":        0xabc,
		`{"traceID":"abc"}`:                0xabc,
		`{"spanID":"1","traceID":"abc"}`:   0,
		`{"traceID":"xyz"}`:                0,
		`{"traceID":7}`:                    0,
		`{"traceID":"\u0061"}`:             0,
		`["traceID"]`:                      0,
		`{}`:                               0,
		`5`:                                0,
		`""`:                               0,
		`{"traceIDs":"abc","traceID":"1"}`: 0,
	} {
		if hi, lo, ok := traceOf([]byte(text)); hi != 0 || lo != want || ok != (want != 0) {
			t.Errorf("%s: %x, %x, %t", text, hi, lo, ok)
		}
	}
}
