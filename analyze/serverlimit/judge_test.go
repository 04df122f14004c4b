package serverlimit

import (
	"maps"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A prompt that is computed with others has its own part of the batch, by its tokens; one that is alone, or not in
// the spell, shares nothing.
func TestSharedPrefills(t *testing.T) {
	const ms = trace.Time(1_000_000)
	v := &server{}
	add := func(r int32, from, to trace.Time, tokens int64) {
		v.intervals[prefilling] = append(v.intervals[prefilling], stateInterval{request.Interval{From: from, To: to}, r, tokens})
	}
	add(1, 0, 90*ms, 100) // with 2, before the spell
	add(2, 0, 90*ms, 100)
	add(3, 100*ms, 200*ms, 300) // with 4: 100 ms for 400 tokens
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
