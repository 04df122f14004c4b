package reports

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/walk"
)

// parseStacks makes the report on stacks.
func parseStacks(ctx *cli.Context) (Run, error) {
	byRank := ctx.Bool("by-rank")
	return func(in *Reading) (*document.Document, error) {
		if err := in.needProfiles(); err != nil {
			return nil, err
		}
		d := document.Of(host.Sum(in.Profiles, walk.Options{ByRank: byRank, From: in.From, To: in.To}).Reports()...)
		d.LimitAll = true
		return d, nil
	}, nil
}
