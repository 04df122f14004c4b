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
		if err := in.needProfiles(); err != nil {
			return nil, err
		}
		d := document.Of(operators.Sum(in.Profiles, walk.Options{ByRank: byRank, From: in.From, To: in.To}).Reports()...)
		d.LimitAll = true
		return d, nil
	}, nil
}
