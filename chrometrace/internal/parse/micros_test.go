package parse

import (
	"math"
	"testing"
)

func TestMicros(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "1": 1000, "-1": -1000, "1.5": 1500, "0.001": 1, "0.0005": 1, "0.00049999": 0, "-0.0005": -1, "1712195495406752.797": 1712195495406752797,
		"1712195495406752.7974": 1712195495406752797, "1712195495406752.7975": 1712195495406752798, "9223372036854775.807": math.MaxInt64, "-9223372036854775.807": -math.MaxInt64,
		"1e3": 1000000, "1.5E-3": 2, "12e-4": 1, "1e-9999": 0, "0e9999": 0, "100000000000000000000e-10": 10000000000000, "0000000000000000000000001.5": 1500, "1.694039968933321e15": 1694039968933321000,
	} {
		if got, next, ok := micros([]byte(text+","), 0); got != want || !ok || next != len(text) {
			t.Errorf("%s: %d %d %v, want %d", text, got, next, ok, want)
		}
	}
	for _, text := range []string{"", "-", "x", ".5", "9223372036854775.808", "1e30", "1e99999999999", "99999999999999999999", "1e", "1e+", "null"} {
		if got, _, ok := micros([]byte(text+","), 0); ok {
			t.Errorf("%s: %d", text, got)
		}
	}
	for _, text := range []string{"1", "1.", "1.5", "1.5e", "1.5e-", "1.5e-3", "-", "1712195495406752.7974"} {
		if _, next, _ := micros([]byte(text), 0); next != len(text) {
			t.Errorf("%s: goes on behind %d", text, next)
		}
	}
}
