package otlp

import "testing"

func TestGridIsSGLangs(t *testing.T) {
	for at := int64(1_787_000_000_123_456_000); at < 1_787_000_000_123_466_000; at += 7 {
		if g := Grid(at); g%256 != 0 || g-at >= 256 || at-g >= 256 {
			t.Fatalf("%d is put on %d, %d ns away", at, g, g-at)
		}
	}
}
