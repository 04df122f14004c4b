package matching

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// A table of matches returns what was put into it, whichever members join later.
func TestMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var table Matches
		var want []Match
		for n := range r.IntN(100) {
			x := Match{Level: Level(r.IntN(int(Levels))), Kind: Kind(r.IntN(6)), Members: []Member{{int32(n), 0}, {int32(n), 1}}}
			table.Add(x)
			want = append(want, x)
			if r.IntN(2) == 0 {
				i, member := r.IntN(len(want)), Member{r.Int32N(100), r.Int32N(100)}
				table.Join(i, member)
				want[i].Members = append(slices.Clone(want[i].Members), member)
			}
		}
		var got []Match
		for i, x := range table.All() {
			if i != len(got) || !reflect.DeepEqual(x, table.At(i)) {
				t.Fatalf("%d: %+v", i, x)
			}
			got = append(got, x)
		}
		if !reflect.DeepEqual(got, want) || table.Len() != len(want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}
