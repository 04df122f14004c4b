package reports

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
)

// parseGaps makes the report on idle GPUs. --limit bounds the longest gaps as it does the
// causes.
func parseGaps(ctx *cli.Context) (Run, error) {
	opt := gaps.Options{ByRank: ctx.Bool("by-rank"), Longest: mostKernels}
	if ctx.IsSet("limit") {
		opt.Longest = ctx.Int("limit")
	}
	return func(in *Reading) (*document.Document, error) {
		switch {
		case in.Profiles == nil && in.Selected:
			return nil, errNothingSelected
		case in.Profiles == nil:
			return nil, errNoProfiles
		}
		collector := gaps.Collect(in.Profiles)
		gpu.Measure(in.Profiles, gpu.Options{From: in.From, To: in.To, Gaps: collector.Add})
		tables := collector.Measure(opt).Reports()
		d := &document.Document{}
		d.AddMain(tables[0])
		d.Add(tables[1:]...)
		return d, nil
	}, nil
}
