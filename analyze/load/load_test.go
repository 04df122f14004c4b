package load

import (
	"testing"
	"time"
)

func TestChooseBucket(t *testing.T) {
	for _, c := range []struct{ extent, want time.Duration }{
		{0, time.Millisecond}, {20 * time.Second, 500 * time.Millisecond}, {time.Minute, time.Second},
		{time.Minute + 1, 2 * time.Second}, {time.Hour, time.Minute}, {60 * 24 * time.Hour, 24 * time.Hour},
		{365 * 24 * time.Hour, 7 * 24 * time.Hour},
	} {
		if got := time.Duration(chooseBucket(int64(c.extent))); got != c.want {
			t.Errorf("%v: buckets of %v, want %v", c.extent, got, c.want)
		}
	}
}
