package judge

import (
	"reflect"
	"testing"
)

// Runs are where something holds more often than not. Isolated moments far away are none.
func TestRuns(t *testing.T) {
	var hits []Hit
	for b, c := range "..x.........xxxx.xxx.........xxxxxxx...x.." {
		hits = append(hits, Hit{b, c == 'x'})
	}
	if got := Runs(hits); !reflect.DeepEqual(got, [][2]int{{12, 19}, {29, 39}}) {
		t.Errorf("%v", got)
	}
	hits = nil // runs whose neighborhoods meet are merged
	for b, c := range "..xxxxx...x...xxxxx..." {
		hits = append(hits, Hit{b, c == 'x'})
	}
	if got := Runs(hits); !reflect.DeepEqual(got, [][2]int{{2, 18}}) {
		t.Errorf("%v", got)
	}
}
