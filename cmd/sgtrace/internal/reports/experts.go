package reports

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/routing"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// parseExperts makes the report on what experts got.
func parseExperts(ctx *cli.Context) (Run, error) {
	size := ctx.Int("ep-size")
	if size < 0 {
		return nil, commandline.Usage("--ep-size %d: want how many GPUs share the experts", size)
	}
	return func(in *Reading) (*document.Document, error) {
		r := routing.Measure(in.Experts, routing.Options{EP: size, Series: in.Series, Profiles: in.Profiles})
		if len(r.Sources) == 0 && in.Inputs != nil {
			return nil, errors.New("no input counts tokens by expert: SGLang's recorder does (POST start_expert_distribution_record, and later dump_expert_distribution_record), and so does a log with --enable-expert-distribution-metrics")
		}
		return r.Report(), nil
	}, nil
}
