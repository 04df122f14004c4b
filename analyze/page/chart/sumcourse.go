package chart

import "github.com/sgtrace/sgtrace/trace"

// A SumCourse is how the durations of a heat map add up in equal parts of a time. The script
// sums up those that overlap a range.
type SumCourse struct {
	From, To trace.Time
	Counts   []int  // in each part: what the sums are of
	Of       string // what is counted: "collective"
	Text     string // of a cell, before its duration
	Sums     []SumIn
}

// A SumIn is a part of the sum of a cell, in ns. They are in the order of parts.
type SumIn struct {
	Part, Row, Column int
	Value             int64
}

// packedCourse is a SumCourse for the script. Times are ms since 1970.
type packedCourse struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Of     string  `json:"of"`
	Text   string  `json:"text"`
	Counts string  `json:"counts"` // packed
	// Sums are packed: how many parts further, row, column, and value of each.
	Sums string `json:"sums"`
}

func (c *SumCourse) packed() *packedCourse {
	if c == nil {
		return nil
	}
	var counts, sums []int64
	for _, n := range c.Counts {
		counts = append(counts, int64(n))
	}
	part := 0
	for _, s := range c.Sums {
		sums = append(sums, int64(s.Part-part), int64(s.Row), int64(s.Column), s.Value)
		part = s.Part
	}
	return &packedCourse{float64(c.From) / 1e6, float64(c.To) / 1e6, c.Of, c.Text, Pack(counts), Pack(sums)}
}
