package replay

import "testing"

// One of two servers in a group has a smaller KV cache, and one of two others has a lower limit of running
// requests: each gets its own limit.
func TestOwnLimits(t *testing.T) {
	r := &Run{Engines: make([]Engine, 4), asked: make([][]asking, 4), shows: make([]pool, 4)}
	r.Engines[2].Group, r.Engines[3].Group = 1, 1
	for n := range int64(20) {
		small, large := &r.shows[0], &r.shows[1]
		small.rooms = append(small.rooms, roomNeeded{4000 + 50*n, true}, roomNeeded{5000 + 50*n, false}, roomNeeded{5000 + 70*n, false})
		large.rooms = append(large.rooms, roomNeeded{600 * n, true}, roomNeeded{600 * n, true}, roomNeeded{610 * n, true})
		r.shows[2].ran, r.shows[3].ran = append(r.shows[2].ran, 4), append(r.shows[3].ran, n%3)
	}
	r.shows[2].running, r.shows[3].running = 4, 16
	if !r.OwnLimits() {
		t.Fatal("no server shows a limit")
	}
	for i, want := range [...]struct{ kv, running int64 }{{4999, unlimited}, {unlimited, unlimited}, {unlimited, 4}, {unlimited, unlimited}} {
		if l := r.Engines[i].limits; l.running != want.running || (want.kv == unlimited) != (l.kv == unlimited) || want.kv != unlimited && (l.kv < 4950 || l.kv > want.kv) {
			t.Errorf("server %d: %d tokens, %d requests; want %+v", i, l.kv, l.running, want)
		}
	}
	for i, p := range r.together(nil) { // for a group as a whole, the lower limit of requests does not count
		if r.limit(i, p); i > 1 && r.Engines[i].limits.running != unlimited {
			t.Errorf("server %d has %d places", i, r.Engines[i].limits.running)
		}
	}
}
