package page

import (
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// maxPacked limits the letters of packed numbers on a page: enough for the metrics of 25,000 requests and most of
// their stages. Pages about very many ranks are limited to crowdedPacked, because they have more figures by rank.
const (
	maxPacked     = 1_600_000
	crowdedPacked = 300_000
)

// A Packer packs the values of a page for its script until its room is used up.
type Packer struct {
	room int // letters
}

// Durations packs durations in ns, ascending, each with the number of its request, counted from 1; 0 means none. It
// returns "" if there is no room or a duration is negative.
func (p *Packer) Durations(ns []int64, requests []int32) string {
	if p.room == 0 || ns[0] < 0 {
		return ""
	}
	if text := chart.PackDurations(ns, requests); p.take(text) {
		return text
	}
	return ""
}

// take reports whether a packed text fits, and if so uses up its room.
func (p *Packer) take(text string) bool {
	if len(text) > p.room {
		return false
	}
	p.room -= len(text)
	return true
}

// RequestTimes has the start and end of each request for the script, which computes values over the requests that
// overlap a range of whole microseconds.
type RequestTimes struct {
	From int64 `json:"from"` // us since 1970
	// Spans has two packed numbers for each request: its start, rounded up to whole us and counted from From, and the
	// number of whole us from there through its end.
	Spans string `json:"spans"`
	// Ended has a digit for each request: the index of its status in Statuses.
	Ended    string   `json:"ended"`
	Statuses []string `json:"statuses"`
	// Met has a digit for each request, its [requests.State]; "" if there is no SLO.
	Met string `json:"met,omitempty"`
}

// Judge adds whether each request met the SLO.
func (t *RequestTimes) Judge(g *requests.Goodput, requests int) {
	met := make([]byte, requests)
	for i := range met {
		met[i] = '0' + byte(g.State(i))
	}
	t.Met = string(met)
}

// Requests packs the times of all requests of a set. If there is no room for them, or the script can't represent
// them, it returns nil, and no other values are packed either.
func (p *Packer) Requests(set *request.Set) *RequestTimes {
	t := requestTimes(set)
	if t == nil || !p.take(t.Spans+t.Ended) {
		p.room = 0
		return nil
	}
	return t
}

func requestTimes(set *request.Set) *RequestTimes {
	if len(set.Requests) == 0 || len(set.Requests) > maxPacked {
		return nil
	}
	first := set.Requests[0].Start
	for i := range set.AllRequests() {
		first = min(first, set.Requests[i].Start)
	}
	t := &RequestTimes{From: int64(first) / 1000}
	for status := request.Finished; status <= request.Unfinished; status++ {
		t.Statuses = append(t.Statuses, status.String())
	}
	var list []int64
	ended := make([]byte, len(set.Requests))
	for i := range set.AllRequests() {
		r := &set.Requests[i]
		if r.Start < 0 || r.End < r.Start {
			return nil
		}
		start := roundUp(r.Start)
		list = append(list, start-t.From, int64(r.End)/1000+1-start)
		ended[i] = '0' + byte(r.Status)
	}
	t.Spans, t.Ended = chart.Pack(list), string(ended)
	return t
}

// roundUp returns a time in us, rounded up.
func roundUp(t trace.Time) int64 {
	us := int64(t) / 1000
	if int64(t)%1000 > 0 {
		us++
	}
	return us
}
