package serverlimit

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// What it takes to say that KV transfers share a link.
const (
	fewTransfers = 40  // the fewest to compare crowded transfers with lonely ones
	moreCrowded  = 1.5 // least ratio of concurrent transfers in the crowded and the lonely half
	asMuchSlower = 0.6 // of that ratio: the least slowdown
	minSlower    = 1.5
	aboutFull    = 2.0 // factor by which the throughput may differ from that of a single transfer
)

// A carried is a KV transfer, and the mean number of transfers in progress meanwhile, itself included.
type carried struct {
	stateInterval
	crowd float64
	pace  float64 // ns per token
}

// sharedLink reports whether KV transfers from a prefill server slow each other down: with n times as many in
// progress, each takes about n times as long per token. Independent transfers would not.
func (v *server) sharedLink(all []segment) (limit Limit, ok bool) {
	moved := v.carried(all)
	if v.location.Role != request.Prefill || len(moved) < fewTransfers {
		return limit, false
	}
	slices.SortStableFunc(moved, func(x, y carried) int { return cmp.Compare(x.crowd, y.crowd) })
	half := len(moved) / 2
	lonely, crowded := medians(moved[:half]), medians(moved[half:])
	crowding, slowing := crowded.crowd/lonely.crowd, crowded.pace/lonely.pace
	alone := lonely.pace / lonely.crowd
	if crowding < moreCrowded || slowing < max(minSlower, asMuchSlower*crowding) || !full(moved[half:], alone) {
		return limit, false
	}
	if limit = v.measureLink(moved, alone); len(limit.Requests) < fewServed {
		return limit, false
	}
	p := spell{all, transferring}
	most, at := p.most(func(s *segment) int32 { return s.n[transferring] })
	limit.Most, limit.At = int(most), at
	return limit, true
}

// measureLink sums up the transfers that were in progress with others. alone is the ns per token of a single
// transfer.
func (v *server) measureLink(moved []carried, alone float64) Limit {
	limit := Limit{Location: v.location, Kind: Transfers, Spells: 1, waits: map[int]int64{}}
	slower := 0.0
	for i := range moved {
		x := &moved[i]
		beyond := int64(x.time.To-x.time.From) - int64(alone*float64(x.tokens))
		limit.waits[int(x.request)] += max(0, beyond)
		if x.crowd < fewWaiting || beyond <= 0 {
			continue
		}
		if len(limit.Requests) == 0 || x.time.From < limit.From {
			limit.From = x.time.From
		}
		limit.To = max(limit.To, x.time.To)
		limit.Waited += beyond
		limit.Requests = append(limit.Requests, int(x.request))
		slower += x.pace / alone
	}
	slices.Sort(limit.Requests)
	limit.Slowdown = slower / float64(len(limit.Requests))
	limit.Length = int64(limit.To - limit.From)
	return limit
}

// full reports whether the transfers together are about as fast as a single one, at alone ns per token, so that the
// link has no capacity left. If some are slow for another reason, throughput is much lower, and if nothing holds them
// up, higher.
func full(moved []carried, alone float64) bool {
	tokens := int64(0)
	var intervals []request.Interval
	for i := range moved {
		tokens += moved[i].tokens
		intervals = append(intervals, moved[i].time)
	}
	covered := request.NewCoverage(intervals)
	used := alone * float64(tokens) / float64(covered.Total())
	return used >= 1/aboutFull && used <= aboutFull
}

// carried returns the KV transfers of a server.
func (v *server) carried(all []segment) []carried {
	var out []carried
	for _, h := range v.intervals[transferring] {
		if h.tokens == 0 {
			continue
		}
		from, _ := slices.BinarySearchFunc(all, h.time.From, func(s segment, t trace.Time) int { return cmp.Compare(s.from, t) })
		sum := 0.0
		for i := from; i < len(all) && all[i].from < h.time.To; i++ {
			sum += float64(all[i].to-all[i].from) * float64(all[i].n[transferring])
		}
		length := float64(h.time.To - h.time.From)
		out = append(out, carried{h, sum / length, length / float64(h.tokens)})
	}
	return out
}

// medians returns the medians of crowd and pace.
func medians(list []carried) (m carried) {
	crowds, paces := make([]float64, len(list)), make([]float64, len(list))
	for i := range list {
		crowds[i], paces[i] = list[i].crowd, list[i].pace
	}
	m.crowd, m.pace = distribution.LowerMedian(crowds), distribution.LowerMedian(paces)
	return m
}
