package reports

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/walk"
)

// parseOps makes the report on operators.
func parseOps(ctx *cli.Context) (Run, error) {
	byRank := ctx.Bool("by-rank")
	return func(in *Reading) (*document.Document, error) {
		switch {
		case in.Profiles == nil && in.Selected:
			return nil, errNothingSelected
		case in.Profiles == nil:
			return nil, errNoProfiles
		}
		tables := operators.Sum(in.Profiles, walk.Options{ByRank: byRank, From: in.From, To: in.To}).Reports()
		d := &document.Document{LimitAll: true}
		d.AddMain(tables[0])
		d.Add(tables[1:]...)
		return d, nil
	}, nil
}
