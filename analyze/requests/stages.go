package requests

import (
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// Stages are the spans of a set, grouped.
type Stages struct {
	By     []Dimension
	Groups []Group // in the order of the dimensions
	// Implausible counts the spans whose times cannot be right. They are in no
	// group.
	Implausible int
	// Again counts the spans that a retraction began anew and that seem to last since
	// the first time. They are in no group, either.
	Again int
}

// A Group is the spans with the same place in every dimension.
type Group struct {
	Key []string // one per dimension; "" is unknown
	distribution.Summary
	// Covered is the time, in ns, in which at least one span of the group was
	// open, summed over the requests and within their bounds. Ranks that do the
	// same side by side count once. request.Unknown if no span is of a request.
	Covered int64
	// E2E is what Covered is a part of: the time, in ns, from start to end of
	// all requests, or of those with the same status, model and so on where the
	// groups divide requests by that.
	E2E int64
}

// Report makes a table of the groups.
func (s *Stages) Report() *table.Table {
	var fields []table.Field[Group]
	title := "Stages"
	for i, d := range s.By {
		if d.Name != "stage" {
			title += " by " + d.Name
		}
		fields = append(fields, table.Field[Group]{Column: table.Column{Name: d.Name, Doc: d.Doc, Most: table.MostName}, Cell: func(g *Group) table.Cell { return table.TextCell(g.Key[i]) }})
	}
	summary := func(g *Group) *distribution.Summary { return &g.Summary }
	fields = append(fields, table.SummaryFields(summary)...)
	fields = append(fields, table.Field[Group]{
		Column: table.Column{Name: "share", Unit: table.Share, Doc: "part of the requests' E2E time in which a span of the row was open; rows overlap"},
		Cell: func(g *Group) table.Cell {
			return table.Cell{Share: float64(g.Covered) / float64(g.E2E), Unknown: g.Covered == request.Unknown || g.E2E == 0}
		},
	})
	r := table.New("sgtrace.report.stages/v1", title, s.Groups, fields)
	if len(s.Groups) == 0 {
		r.Note("no stages were traced, only whole requests or spans of other services")
	}
	table.NoteFewSamples(r, s.Groups, func(g *Group) int64 { return int64(g.N) }, func(g *Group) string { return strings.Join(g.Key, " ") })
	if s.Implausible > 0 {
		r.Note("%s left out because of impossible times", words.Counted(s.Implausible, "span"))
	}
	if s.Again > 0 {
		r.Note("%s left out: they restarted after a retraction, and their recorded time includes the first attempt", words.Counted(s.Again, "span"))
	}
	return r
}
