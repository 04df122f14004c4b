package page

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// sampleOverTime returns two devices in 20 buckets of 100 ns from 1000 on, and 2
// more a minute later. The second device was not recorded in the first bucket.
func sampleOverTime() *overtime.Timeline {
	t := &overtime.Timeline{Grid: load.Grid{Bucket: 100, Spans: []load.Span{{Start: 1000, N: 20}, {Start: 60_000_000_000, First: 20, N: 2}}}}
	for i := range 2 {
		d := overtime.Device{Rank: []string{"TP0", "TP1"}[i], RankIndex: int32(i), Cells: make([]overtime.Cell, 22)}
		for b := range d.Cells {
			if b >= i {
				d.Cells[b] = overtime.Cell{Recorded: 100, Busy: int64(10*i + b), Compute: 5}
			}
		}
		t.Devices = append(t.Devices, d)
	}
	points := make([]overtime.CounterPoint, 22)
	for b := range points {
		points[b].Mean = float64(b) * 1e9
	}
	t.Counters = []overtime.Counter{
		{Rank: "TP1", RankIndex: 1, Source: "GPU 1", Name: "memory reserved", Unit: "bytes", Kind: profile.MemoryCounter, Points: points},
		{RankIndex: -1, Source: "GPU 9", Name: "Unallocated Warps in Active SMs", Unit: "%", Kind: profile.DeviceCounter, Points: points},
	}
	t.Under = make([]float64, 22)
	return t
}

// Of many devices, the one that a finding is about is drawn.
func TestDeviceOfAFindingIsDrawn(t *testing.T) {
	o := sampleOverTime()
	for i := 2; i < 20; i++ {
		d := o.Devices[1]
		d.Rank, d.RankIndex = fmt.Sprintf("TP%d", i), int32(i)
		o.Devices = append(o.Devices, d)
	}
	findings := []finding.Finding{{At: place.Named("TP15")}}
	curves := GPUsOverTime(o, nil, findings, Source{}).Figures[0].Body.(*chart.Panels).Panels[0].Curves
	if n := len(curves); n != 8 || curves[n-1].Name != "TP15" {
		t.Errorf("%d curves, the last is of %s", n, curves[n-1].Name)
	}
}

// Curves have the values of the cells in the longest span, and nothing where nothing
// was recorded. Minor counters have no curve.
func TestGPUsOverTime(t *testing.T) {
	s := GPUsOverTime(sampleOverTime(), nil, nil, Source{})
	body := s.Figures[0].Body.(*chart.Panels)
	var titles []string
	for _, p := range body.Panels {
		titles = append(titles, p.Title)
	}
	if want := []string{"GPU busy", "memory reserved, GB"}; !slices.Equal(titles, want) {
		t.Fatalf("panels %q, want %q", titles, want)
	}
	busy := body.Panels[0].Curves
	if len(busy) != 2 || len(busy[1].Values) != 20 || !math.IsNaN(busy[1].Values[0]) || busy[1].Values[3] != 0.13 || busy[0].Values[3] != 0.03 {
		t.Errorf("busy: %+v", busy)
	}
	if memory := body.Panels[1].Curves[0]; memory.Values[7] != 7 || memory.Color != busy[1].Color || memory.Name != busy[1].Name {
		t.Errorf("memory: %+v", memory)
	}
	if body.From != 1000 || body.To != 3000 || len(body.Times) != 20 || body.Times[1] != 1150 {
		t.Errorf("from %d to %d, %v", body.From, body.To, body.Times)
	}
}

// A recording that covers a good part of the requests' time shares their axis.
func TestGPUsOverTimeHaveTheAxisOfRequests(t *testing.T) {
	requests := func(to trace.Time, bucket int64) load.Timeline {
		return load.Timeline{Grid: load.Grid{Bucket: bucket, Spans: []load.Span{{Start: 500, N: 8}}}, From: 500, To: to, Series: []load.Series{{Points: make([]load.Point, 8)}}}
	}
	for _, c := range []struct {
		requests load.Timeline
		from, to trace.Time
	}{
		{requests(8400, 1000), 500, 8500},
		{requests(8_400_000, 1_000_000), 1000, 3000},
	} {
		body := GPUsOverTime(sampleOverTime(), &c.requests, nil, Source{}).Figures[0].Body.(*chart.Panels)
		if body.From != c.from || body.To != c.to {
			t.Errorf("from %d to %d, want %d to %d", body.From, body.To, c.from, c.to)
		}
	}
}

// If there is a section about requests over time, the activity of devices is in that section.
func TestRequestsAndGPUsShareASection(t *testing.T) {
	s := GPUsOverTime(sampleOverTime(), nil, nil, Source{})
	both := joinOverTime([]Section{{Title: "Latency"}, {Title: overTime, Figures: []*Figure{{}}}, {Title: "Stages"}}, s)
	if len(both) != 3 || len(both[1].Figures) != 1+len(s.Figures) {
		t.Errorf("%d sections: %+v", len(both), both)
	}
	if alone := joinOverTime(nil, s); len(alone) != 1 || alone[0].Title != overTime {
		t.Errorf("%+v", alone)
	}
	if none := joinOverTime(nil, GPUsOverTime(&overtime.Timeline{}, nil, nil, Source{})); len(none) != 0 {
		t.Errorf("%+v", none)
	}
}
