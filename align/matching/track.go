package matching

// followTolerance is how far the end of a call may be from where the calls before it
// let expect it, ns.
const followTolerance = 50_000

// A follower walks along two sequences that run in parallel and pairs their calls
// by time. skew is the difference of the clocks, b minus a, as of the last pairs; it
// follows drift and noise slowly, so that one late end does not mislead it.
type follower struct {
	a, b *sequence
	skew float64
	last int64 // end on a of the last pair
}

// follow returns the pairs along s, ascending.
func follow(a, b *sequence, s shift) []pair {
	from, to := s.at, s.at+s.overlap
	start, best := from, int64(-1)
	for i := from; i < to; i++ { // begin where the difference is the typical one
		if !same(a, i, b, i+s.by) {
			continue
		}
		d := b.ends[i+s.by] - a.ends[i] - s.skew
		if d = max(d, -d); best < 0 || d < best {
			start, best = i, d
		}
		if best < 1000*a.loose {
			break
		}
	}
	if best < 0 {
		return nil
	}
	back := follower{a, b, float64(s.skew), a.ends[start]}.walk(start-1, start+s.by-1, -1)
	pairs := make([]pair, 0, len(back)+int(to-start))
	for k := len(back) - 1; k >= 0; k-- {
		pairs = append(pairs, back[k])
	}
	ahead := follower{a, b, float64(s.skew), a.ends[start]}.walk(start, start+s.by, 1)
	return append(pairs, ahead...)
}

// walk goes from calls i and j in steps of by to the end of a sequence.
func (f follower) walk(i, j, by int32) []pair {
	var pairs []pair
	na, nb := int32(len(f.a.ends)), int32(len(f.b.ends))
	for i >= 0 && j >= 0 && i < na && j < nb {
		ea, eb := f.a.ends[i], f.b.ends[j]
		d := float64(eb-ea) - f.skew
		elapsed := max(ea-f.last, f.last-ea)
		tolerance := float64(f.a.loose*followTolerance) + driftLimit*float64(elapsed)
		tolerance = min(tolerance, max(float64(nearest(f.a, i))/2, float64(nearest(f.b, j))/2, float64(2000*f.a.loose)))
		if d < tolerance && -d < tolerance && same(f.a, i, f.b, j) {
			pairs = append(pairs, pair{i, j})
			f.skew += d / 4
			f.last = ea
			i, j = i+by, j+by
			continue
		}
		// The one that comes first in the direction of the walk has no peer.
		switch later := d*float64(by) > 0; {
		case d < tolerance && -d < tolerance:
			i, j = i+by, j+by // at the same time, but another call: neither has
		case later:
			i += by
		default:
			j += by
		}
	}
	return pairs
}

// nearest returns the distance from the end of call i to the next one's on either side.
func nearest(s *sequence, i int32) int64 {
	d := int64(1 << 62)
	if i > 0 {
		d = min(d, s.ends[i]-s.ends[i-1])
	}
	if int(i)+1 < len(s.ends) {
		d = min(d, s.ends[i+1]-s.ends[i])
	}
	return d
}
