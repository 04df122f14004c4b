package reports

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/tokens"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// rankTables are the tables by rank. The main one is stages or, without requests, gpu.kernels.
var rankTables = slices.Concat([]string{"stages", "gpu.kernels", "stragglers"}, collectiveTables, []string{
	"gloo.ranks", "gloo.waits", "gloo.kinds", "gloo.parts",
	"gpu", "gpu.idle", "gpu.overlap", "gpu.streams", "steps", "tokens", "ranks", "ranks.share", "ranks.steps", "ranks.pipeline", "slo.ranks", "logs.ranks",
})

// collectiveTables are those that need only collectives.
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
	table := ctx.String("table")
	return func(in *Reading) (*document.Document, error) {
		if err := in.hasRequests(objectives); err != nil {
			return nil, err
		}
		opt.From, opt.To = in.From, in.To
		if in.Profiles != nil && slices.Contains(collectiveTables, table) {
			return compareArrivals(in, table), nil
		}
		return compareRanks(in, opt, objectives)
	}, nil
}

// compareArrivals returns the tables of collectives, at least the requested one, and of stragglers.
func compareArrivals(in *Reading, table string) *document.Document {
	measure := collective.Measure
	switch table {
	case "collectives.ranks", "collectives.waits", "collectives.steps":
		measure = collective.MeasureRanks
	}
	collectives := measure(in.Profiles, in.From, in.To)
	d := &document.Document{}
	d.Add(straggler.Find(suspectsOf(collectives, nil)).Report())
	d.Add(collectives.Reports()...)
	return d
}

// suspectsOf returns the ranks that are late to collectives; gpus explains why, if not nil.
func suspectsOf(collectives *collective.Collectives, gpus *gpu.GPUs) straggler.Suspects {
	found := collectives.Stragglers(gpus)
	return straggler.Suspects{Stragglers: found, Acquittal: collectives.Verdict(found)}
}

// compareRanks returns the verdict about stragglers first, then the profiles of the ranks, then what
// requests show about them.
func compareRanks(in *Reading, opt gpu.Options, objectives []requests.Objective) (*document.Document, error) {
	if in.onlyInFlight() {
		return nil, errOnlyInFlight
	}
	d := &document.Document{}
	var gpus *gpu.GPUs
	var collectives, hosts *collective.Collectives
	var ranks *rank.Ranks
	var suspects []straggler.Suspects
	if in.Profiles != nil {
		gpus = gpu.Measure(in.Profiles, opt)
		collectives = collective.Measure(in.Profiles, opt.From, opt.To)
		suspects = append(suspects, suspectsOf(collectives, gpus))
		if hosts = collective.MeasureHosts(in.Profiles, opt.From, opt.To); hosts != nil {
			suspects = append(suspects, suspectsOf(hosts, gpus))
		}
	}
	if in.Requests != nil {
		ranks = rank.Measure(place.Of(in.Requests))
		suspects = append(suspects, straggler.Suspects{Stragglers: ranks.Stragglers(), Acquittal: []string{ranks.Verdict()}})
	}
	if in.Series != nil && suspects == nil {
		suspects = append(suspects, straggler.Suspects{Acquittal: []string{"no straggler can be told: logs and metrics do not say when ranks end a step or meet in a collective"}})
	}
	d.Add(straggler.Find(suspects...).Report())
	if collectives != nil {
		d.Add(collectives.Reports()...)
	}
	if hosts != nil {
		d.Add(hosts.Reports()...)
	}
	if gpus != nil {
		addDevices(d, gpus)
	}
	if in.Series != nil {
		l := telemetry.Measure(in.Series, telemetry.Options{From: in.From, To: in.To})
		if in.Requests == nil && in.Profiles == nil {
			d.AddMain(l.RankReport())
		} else {
			d.Add(l.RankReport())
		}
	}
	if ranks != nil {
		by, err := requests.ParseDimensions("rank")
		if err != nil {
			return nil, err
		}
		d.Add(ranks.Reports()...)
		if objectives != nil {
			d.Add(requests.MeasureGoodput(in.Requests, objectives).RankReport())
		}
		d.AddMain(requests.GroupStages(in.Requests, by).Report())
	}
	return d, nil
}

// addDevices adds the tables of devices in profiles.
func addDevices(d *document.Document, gpus *gpu.GPUs) {
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

// classes returns the kernel classes that --classes names: "hta" is Holistic Trace Analysis; anything else
// is a file.
func classes(name string) (*kernelname.Classes, error) {
	if name == "hta" {
		return kernelname.HTAClasses(), nil
	}
	return readNamed("classes", name, kernelname.ReadClasses)
}
