package reports

import (
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/fleet"
)

// fleetTables are the tables about weeks.
var fleetTables = []string{"fleet.offenders", "fleet.losses", "fleet.steps", "fleet.versions", "fleet.runs", "fleet.costs"}

// fleetReport looks at one run after another, as the summary would, and says what they tell
// together.
func fleetReport(in *Reading) (*document.Document, error) {
	var list []*fleet.Run
	err := in.EachRun(func(r *OneRun) {
		m := finders.Measure(finders.Inputs{Requests: r.Requests, Profiles: r.Profiles})
		list = append(list, fleet.Reduce(&m, r.From, r.To, r.Inputs))
	})
	if err != nil {
		return nil, err
	}
	return fleet.New(list).Document(), nil
}
