package reports

import (
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/slo"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/tokens"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/profile"
)

// rankTables are the tables by rank. The main one is of stages, without requests of
// kernels.
var rankTables = slices.Concat([]string{"stages", "gpu.kernels", "stragglers"}, collectiveTables, []string{
	"gpu", "gpu.idle", "gpu.overlap", "gpu.streams", "steps", "tokens", "ranks", "ranks.share", "ranks.steps", "ranks.pipeline", "slo.ranks",
})

// collectiveTables are those of them that are made of collectives alone.
var collectiveTables = []string{"collectives.ranks", "collectives.waits", "collectives.kinds", "collectives.parts", "collectives.steps", "collectives.alltoall"}

// parseRanks makes the report that compares ranks.
func parseRanks(ctx *cli.Context) (Run, error) {
	opt := gpu.Options{}
	if name := ctx.String("classes"); name != "" {
		var err error
		if opt.Classes, err = classes(name); err != nil {
			return nil, err
		}
	}
	objectives, err := Objectives(ctx)
	if err != nil {
		return nil, err
	}
	alone := slices.Contains(collectiveTables, ctx.String("table"))
	return func(in *Reading) (*document.Document, error) {
		if err := in.hasRequests(objectives); err != nil {
			return nil, err
		}
		opt.From, opt.To = in.From, in.To
		return compareRanks(in, opt, objectives, alone && in.Profiles != nil)
	}, nil
}

// compareRanks has the verdict about stragglers first, then what profilers saw of ranks,
// then what requests tell about them. Collectives alone, without what else devices did, are
// followed by nothing.
func compareRanks(in *Reading, opt gpu.Options, objectives []slo.Objective, alone bool) (*document.Document, error) {
	d := &document.Document{}
	var gpus *gpu.GPUs
	var collectives *collective.Collectives
	var ranks *rank.Ranks
	var suspects []straggler.Suspects
	if in.Profiles != nil {
		if !alone {
			gpus = gpu.Measure(in.Profiles, opt)
		}
		collectives = collective.Measure(in.Profiles, opt.From, opt.To)
		found := collectives.Stragglers(gpus)
		suspects = append(suspects, straggler.Suspects{Stragglers: found, Acquittal: collectives.Verdict(found)})
	}
	if in.Requests != nil {
		ranks = rank.Measure(in.Requests)
		suspects = append(suspects, straggler.Suspects{Stragglers: ranks.Stragglers(), Acquittal: []string{ranks.Verdict()}})
	}
	d.Add(straggler.Find(suspects...).Report())
	if collectives != nil {
		d.Add(collectives.Reports()...)
	}
	if alone {
		return d, nil
	}
	if gpus != nil {
		d.Add(gpus.TimeReport(), gpus.Report(), gpus.IdleReport())
		if len(gpus.StepShares()) > 0 {
			d.Add(gpus.StepShareReport())
		}
		d.Add(gpus.OverlapReport(), gpus.StreamReport(), gpus.StepReport())
		if t := tokens.Measure(gpus); len(t.Rows) > 0 {
			d.Add(t.Report())
		}
		d.AddMain(gpus.KernelReport())
	}
	if ranks != nil {
		by, err := requests.ParseDimensions("rank")
		if err != nil {
			return nil, err
		}
		d.Add(ranks.Reports()...)
		if objectives != nil {
			d.Add(slo.Measure(in.Requests, objectives).RankReport())
		}
		d.AddMain(requests.GroupStages(in.Requests, by).Report())
	}
	return d, nil
}

// classes returns the classes of kernels that --classes names: "hta" are those of
// Holistic Trace Analysis, all else is a file.
func classes(name string) (*profile.Classes, error) {
	if name == "hta" {
		return profile.HTAClasses(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, commandline.Usage("--classes: %v", err)
	}
	defer f.Close()
	list, err := profile.ReadClasses(f, name)
	if err != nil {
		return nil, commandline.Usage("--classes: %v", err)
	}
	return list, nil
}
