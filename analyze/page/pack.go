package page

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/slo"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// mostPacked is how many letters of packed numbers a page has: enough for the metrics of
// 25,000 requests and most of their stages. One about very many ranks has less, as more on it is
// by rank.
const (
	mostPacked    = 1_600_000
	crowdedPacked = 300_000
)

// A packer packs the values of a page for its script, as long as there is room.
type packer struct {
	room int // letters
}

// newPacker has the room of a page about a set.
func newPacker(set *request.Set) *packer {
	if len(set.Procs) > crowded {
		return &packer{crowdedPacked}
	}
	return &packer{mostPacked}
}

// take reports whether there is room for a packed text, and uses it.
func (p *packer) take(text string) bool {
	if len(text) > p.room {
		return false
	}
	p.room -= len(text)
	return true
}

// RequestTimes are when requests were, for the script: it computes with those that overlap
// a range of time, which has whole microseconds.
type RequestTimes struct {
	From int64 `json:"from"` // us since 1970
	// Spans has two packed numbers for each request, in us: when the first microsecond begins
	// that is not before it, since From, and how many begin in it.
	Spans string `json:"spans"`
	// Ended is how each request ended, a digit: its place in Statuses.
	Ended    string   `json:"ended"`
	Statuses []string `json:"statuses"`
	// Met has a digit for each request, an [slo.State]; "" if there is no SLO.
	Met string `json:"met,omitempty"`
}

// judge adds what became of each request.
func (t *RequestTimes) judge(g *slo.Goodput, requests int) {
	met := make([]byte, requests)
	for i := range met {
		met[i] = '0' + byte(g.State(i))
	}
	t.Met = string(met)
}

// requests packs the times of all requests of a set. It is nil if there is no room for them, or
// they are out of reach for a script; then no values are packed either.
func (p *packer) requests(set *request.Set) *RequestTimes {
	t := requestTimes(set)
	if t == nil || !p.take(t.Spans+t.Ended) {
		p.room = 0
		return nil
	}
	return t
}

func requestTimes(set *request.Set) *RequestTimes {
	if len(set.Requests) == 0 || len(set.Requests) > mostPacked {
		return nil
	}
	first := set.Requests[0].Start
	for i := range set.Requests {
		first = min(first, set.Requests[i].Start)
	}
	t := &RequestTimes{From: int64(first) / 1000}
	for status := request.Finished; status <= request.Unfinished; status++ {
		t.Statuses = append(t.Statuses, status.String())
	}
	var list []int64
	ended := make([]byte, len(set.Requests))
	for i := range set.Requests {
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

// roundUp returns a time in whole microseconds.
func roundUp(t trace.Time) int64 {
	us := int64(t) / 1000
	if int64(t)%1000 > 0 {
		us++
	}
	return us
}

// lines packs the values of lines, and says of which there is no room for them.
func (p *packer) lines(lines []*line) (notes []string) {
	var left []string
	for _, l := range lines {
		if p.room == 0 || l.ns[0] < 0 {
			left = append(left, l.name)
			continue
		}
		owners := make([]int32, len(l.requests))
		for i, r := range l.requests {
			owners[i] = r + 1 // 0 is none
		}
		if text := chart.PackDurations(l.ns, owners); p.take(text) {
			l.packed = text
		} else {
			left = append(left, l.name)
		}
	}
	if len(left) == 0 || len(left) == len(lines) {
		return nil // the script says that the figure shows the whole run
	}
	return []string{fmt.Sprintf("%s: too many values to embed, so these curves show the whole run; with --from and --to, the command prints a range", strings.Join(left, ", "))}
}
