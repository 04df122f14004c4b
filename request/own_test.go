package request

import (
	"math/rand/v2"
	"testing"
)

// Gateway rows are assigned as if requests came one by one, each taking the rows inside its own
// gateway row that are still free.
func TestOwnAsInTurn(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &Set{}
		const rows = 60
		below := make([][]uint32, rows)
		for i := range rows {
			kind, above := Gateway, int32(None)
			if rng.IntN(6) == 0 {
				kind = Stage
			}
			if i > 0 && rng.IntN(4) > 0 {
				above = int32(rng.IntN(i))
				below[above] = append(below[above], uint32(i))
			}
			s.Rows, s.Tree.Above = append(s.Rows, Row{Kind: kind}), append(s.Tree.Above, above)
		}
		for i := range rows {
			s.Tree.First, s.Tree.Below = append(s.Tree.First, uint32(len(s.Tree.Below))), append(s.Tree.Below, below[i]...)
		}
		s.Tree.First = append(s.Tree.First, uint32(len(s.Tree.Below)))
		for range 40 {
			r := Request{Gateway: None}
			if g := rng.IntN(rows); s.Rows[g].Kind == Gateway && rng.IntN(3) > 0 {
				r.Gateway = g
			}
			s.AddRequest(r)
		}
		want := make([]int32, rows)
		var take func(i, r int)
		take = func(i, r int) {
			want[i] = int32(r + 1)
			for _, c := range below[i] {
				if s.Rows[c].Kind == Gateway {
					take(int(c), r)
				}
			}
		}
		for r := range s.Requests {
			if g := s.Requests[r].Gateway; g != None && want[g] == 0 {
				take(g, r)
			}
		}
		s.Own()
		for i, w := range want {
			if s.gatewayOf[i] != w {
				t.Fatalf("seed %d: row %d is of request %d, want %d", seed, i, s.gatewayOf[i]-1, w-1)
			}
		}
	}
}
