package parse

import "testing"

func TestVolume(t *testing.T) {
	for list, want := range map[string]int64{
		"[1, 1, 1]": 1, "[32, 4, 1]": 128, "[1,1,1]": 1, "[ 1 , 2, 3 ]": 6, "[0, 1, 1]": 0, "[]": 0, "[1, , 1]": 0, "[1.5, 1, 1]": 0,
		"null": 0, `"1x1x1"`: 0, "[-1, 1, 1]": 0, "[99999999999999999999]": 0, "[4294967295, 4294967295, 4294967295]": 0,
	} {
		if got := volume([]byte(list)); got != want {
			t.Errorf("%s: %d, want %d", list, got, want)
		}
	}
}
