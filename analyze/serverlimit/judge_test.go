package serverlimit

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A prompt that is computed together with others only uses its share of the batch, by
// tokens. Prompts that are alone or outside of the spell share nothing.
func TestSharedPrefills(t *testing.T) {
	const ms = trace.Time(1_000_000)
	v := &server{}
	add := func(r int32, from, to trace.Time, tokens int64) {
		v.intervals[prefilling] = append(v.intervals[prefilling], stateInterval{request.Interval{From: from, To: to}, r, tokens})
	}
	add(1, 0, 90*ms, 100) // together with 2, before the spell
	add(2, 0, 90*ms, 100)
	add(3, 100*ms, 200*ms, 300) // together with 4: 100 ms for 400 tokens
	add(4, 100*ms+20_000, 200*ms, 100)
	add(5, 200*ms, 260*ms, 700) // alone
	p := spell{segments: []segment{{from: 95 * ms, to: 200 * ms}}}
	shared := map[int]int64{}
	v.addShared(shared, &p)
	want := map[int]int64{3: 25_000_000, 4: 74_985_000, 5: 0}
	if !maps.Equal(shared, want) {
		t.Errorf("other prompts are computed for %v, want %v", shared, want)
	}
}

// Retractions right before a prompt is computed make room for it. If the KV cache is full, the remaining batch
// first decodes its next token; and with a few retractions, it may be chance.
func TestPreempts(t *testing.T) {
	const ms = trace.Time(1_000_000)
	for _, c := range []struct {
		n     int
		after trace.Time // delay until a prompt is computed
		want  bool
	}{{8, ms, true}, {8, 30 * ms, false}, {2, ms, false}} {
		v := &server{}
		for i := range trace.Time(c.n) {
			at := i * 400 * ms
			v.retracts = append(v.retracts, at)
			v.intervals[prefilling] = append(v.intervals[prefilling], stateInterval{time: request.Interval{From: at + c.after, To: at + c.after + 50*ms}})
		}
		if got := (&Limits{servers: []*server{v}}).Preempts(); got != c.want {
			t.Errorf("%d requests are thrown out %d ms before a prompt: %v", c.n, c.after/ms, got)
		}
	}
}

// A request that waits for room in a KV cache gets it when another request leaves. If requests
// connect at other times, they do not wait for room.
func TestWaitsForRoom(t *testing.T) {
	const ms = trace.Time(1_000_000)
	for _, room := range []bool{true, false} {
		v := &server{}
		for i := range trace.Time(40) {
			left := 500*i*ms + 137*ms*(i%3)
			v.intervals[running] = append(v.intervals[running], stateInterval{time: request.Interval{From: left - 900*ms, To: left}})
			until := left + 2*ms // one step later
			if !room {
				until = 500*i*ms + 311*ms + 29*ms*(i%5)
			}
			v.intervals[awaitingCache] = append(v.intervals[awaitingCache],
				stateInterval{time: request.Interval{From: until - 700*ms, To: until}}, stateInterval{time: request.Interval{From: until - 3*ms, To: until - 2*ms}})
		}
		slices.SortFunc(v.intervals[awaitingCache], func(x, y stateInterval) int { return cmp.Compare(x.time.From, y.time.From) })
		list := spells(v.segments(), awaitingCache)
		if len(list) != 1 || v.areFreed(&list[0]) != room {
			t.Errorf("%d spells, they wait for room: want %v", len(list), room)
		}
	}
}
