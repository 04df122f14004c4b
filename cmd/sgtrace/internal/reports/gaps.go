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
		if err := in.needProfiles(); err != nil {
			return nil, err
		}
		collector := gaps.Collect(in.Profiles)
		gpu.Measure(in.Profiles, gpu.Options{From: in.From, To: in.To, Gaps: collector.Add})
		opt.From, opt.To = in.From, in.To
		return document.Of(collector.Measure(opt).Reports()...), nil
	}, nil
}
