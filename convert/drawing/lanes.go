package drawing

import (
	"math"

	"github.com/sgtrace/sgtrace/trace"
)

// laneEnds are the ends of what lies last on each lane, as the leaves of a tree that
// has the earliest end below every node: the first free lane is found without looking
// at all that are taken, of which there may be as many as requests that ran at once.
type laneEnds struct {
	tree  []trace.Time // 1 is the top, 2i and 2i+1 are below i; the leaves are its second half
	count int
}

// add adds a lane on which nothing lies yet.
func (l *laneEnds) add() {
	if half := len(l.tree) / 2; l.count == half {
		old := l.tree[half:]
		l.tree = make([]trace.Time, max(2, 4*half))
		for i := range l.tree {
			l.tree[i] = math.MaxInt64
		}
		l.count = 0
		for _, end := range old {
			l.count++
			l.set(l.count-1, end)
		}
	}
	l.count++
}

func (l *laneEnds) at(lane int) trace.Time { return l.tree[len(l.tree)/2+lane] }

func (l *laneEnds) set(lane int, end trace.Time) {
	i := len(l.tree)/2 + lane
	l.tree[i] = end
	for i /= 2; i > 0; i /= 2 {
		l.tree[i] = min(l.tree[2*i], l.tree[2*i+1])
	}
}

// next returns the first lane from the given one on that ends at a time or before, the
// number of lanes if none does.
func (l *laneEnds) next(from int, most trace.Time) int {
	if from >= l.count {
		return l.count
	}
	half := len(l.tree) / 2
	i := half + from
	for l.tree[i] > most {
		for i%2 == 1 { // nothing to the right below the same node
			if i /= 2; i <= 1 {
				return l.count
			}
		}
		i++
	}
	for i < half {
		if i *= 2; l.tree[i] > most {
			i++
		}
	}
	return min(i-half, l.count)
}
