package rank

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// stepRows are the steps of the requests of a team.
type stepRows struct {
	width int // ranks
	list  []stepRow
	ends  []int64 // of every row, one per rank; NoArrival
}

// A stepRow is a step of a request, as one rank has it.
type stepRow struct {
	end     trace.Time
	took    int64 // ns
	request int32
	row     int32 // in ends, counted in ranks
}

// add adds a row and returns its ends, which are to be filled in.
func (s *stepRows) add(p *request.Part, step rankStep) []int64 {
	row := len(s.list)
	s.list = append(s.list, stepRow{step.to, int64(step.to - step.from), int32(p.Request), int32(row)})
	for range s.width {
		s.ends = append(s.ends, straggler.NoArrival)
	}
	return s.ends[row*s.width:]
}

// drop takes back the last row.
func (s *stepRows) drop() {
	s.list = s.list[:len(s.list)-1]
	s.ends = s.ends[:len(s.ends)-s.width]
}

// stepTraits are what lateness in steps may come with.
var stepTraits = []straggler.Trait{
	{Phrase: func(least float64) string { return fmt.Sprintf("with %.0f requests or more in the batch", least) }},
	{Phrase: func(float64) string { return "with a prefill in or right before them" }},
}

// gather puts the requests of a batch together, which are one step, and notes the
// steps as sync points. The requests of a batch end within request.SameBatch of each other on a
// rank; no request is twice in one. A rank arrives with its last request. The
// shortest time is that of the step: others include what was computed before they
// joined. prefills are the ends of prefills on the first rank.
func (s *stepRows) gather(g *straggler.SyncSamples, prefills []trace.Time) {
	slices.SortFunc(s.list, func(x, y stepRow) int { return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(x.row, y.row)) })
	slices.Sort(prefills)
	batch := map[int32]int{} // of every request, the last one
	arrivals := make([]int64, s.width)
	for from, id := 0, 1; from < len(s.list); id++ {
		for r := range arrivals {
			arrivals[r] = straggler.NoArrival
		}
		first := s.list[from]
		took, to := first.took, from
		for ; to < len(s.list); to++ {
			row := s.list[to]
			if to > from && row.end-s.list[to-1].end > request.SameBatch || batch[row.request] == id {
				break
			}
			batch[row.request] = id
			took = min(took, row.took)
			for r, end := range s.ends[int(row.row)*s.width : int(row.row+1)*s.width] {
				arrivals[r] = max(arrivals[r], end)
			}
		}
		// Steps of before have taken earlier prefills off.
		prefilled, _ := slices.BinarySearch(prefills, s.list[to-1].end+request.SameBatch)
		prefills = prefills[prefilled:]
		g.Meet(first.end, arrivals, took, float64(to-from), float64(min(1, prefilled)))
		from = to
	}
}
