package reports

import (
	"errors"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/allocations"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/fleet"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/hang"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/routing"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/urfave/cli/v2"
)

// fleetTables are the tables of the report on weeks.
var fleetTables = []string{"fleet.offenders", "fleet.losses", "fleet.steps", "fleet.versions", "fleet.runs", "fleet.costs", "findings", "summary.finders", "gate"}

// parseFleet makes the report that analyzes the runs one after another, as the summary would, and says what
// they show together.
func parseFleet(ctx *cli.Context) (Run, error) {
	o, err := ReadFleet(ctx)
	if err != nil {
		return nil, err
	}
	all, evidence := ctx.Bool("all-findings"), ctx.Bool("evidence")
	return func(in *Reading) (*document.Document, error) {
		f, found, err := o.Look(in)
		if err != nil {
			return nil, err
		}
		d := f.Document(&overview.List{Result: found, Select: in.Select, Inputs: in.Given, All: all, Evidence: evidence})
		if o.Alarms != nil {
			addGate(d, o.Alarms.Judge(found, nil))
		}
		return d, nil
	}, nil
}

// Fleet holds the options of the report on weeks.
type Fleet struct {
	Alarms *gate.Alarms // nil without --fail-on
	mutes  []finders.Mute
}

// ReadFleet reads the flags of the report on weeks.
func ReadFleet(ctx *cli.Context) (o Fleet, err error) {
	if err := CheckPage(ctx); err != nil {
		return o, err
	}
	if o.mutes, err = Mutes(ctx); err != nil {
		return o, err
	}
	if o.Alarms, err = failOn(ctx); err != nil || o.Alarms == nil {
		return o, err
	}
	kinds := finders.KindsOf(finders.OfWeeks())
	if other := o.Alarms.Other(kinds); other != "" {
		return o, commandline.Usage("--fail-on %s: --fleet looks for %s", other, strings.Join(kinds, ", "))
	}
	return o, nil
}

// Look reads the runs and returns what they show together, without muted findings.
func (o *Fleet) Look(in *Reading) (*fleet.Fleet, *finders.Result, error) {
	f, err := in.fleet()
	if err != nil {
		return nil, nil, err
	}
	found := f.Look()
	found.Mute(o.mutes)
	return f, &found, nil
}

// fleet reads the runs one after another.
func (in *Reading) fleet() (*fleet.Fleet, error) {
	var list []*fleet.Run
	err := in.EachRun(func(r *OneRun) {
		m := finders.Measure(finders.Inputs{Requests: r.Requests, Profiles: r.Profiles})
		list = append(list, fleet.Reduce(&m, r.From, r.To, r.Inputs))
	})
	return fleet.New(list), err
}

// weeks returns the results of several runs together; nil if there is only one run, or they cannot be read.
func (in *Reading) weeks() finders.Runs {
	if in.EachRun == nil {
		return nil
	}
	f, err := in.fleet()
	if err != nil || len(f.Runs) < 2 {
		return nil
	}
	return f
}

// hangs returns the report on hangs.
func hangs(in *Reading) (*document.Document, error) {
	switch {
	case in.Flight != nil:
		return hang.Find(in.Flight).Report(), nil
	case in.Inputs == nil: // to list its columns
		return hang.Find(recorder.NewInFlight(trace.NewSymbols())).Report(), nil
	}
	return nil, errors.New("no input says what processes have in flight: PyTorch's flight recorder does (nccl_trace_rank_*), and so do logs with NCCL_DEBUG=INFO")
}

// memory returns the report on memory snapshots.
func memory(in *Reading) (*document.Document, error) {
	switch {
	case in.Heap != nil:
		return allocations.Measure(in.Heap, in.Profiles).Report(), nil
	case in.Inputs == nil: // to list its columns
		return allocations.Measure(recorder.NewMemory(trace.NewSymbols()), nil).Report(), nil
	}
	return nil, errors.New("no input is a snapshot of memory: PyTorch writes one with torch.cuda.memory._dump_snapshot, and SGLang with the activity MEM of /start_profile")
}

// parseExperts makes the report on the load of experts.
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
