package finders

import (
	"sync"

	"github.com/sgtrace/sgtrace/analyze/allocations"
	"github.com/sgtrace/sgtrace/analyze/caches"
	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/hang"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/routing"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Inputs are the tables that finders look at.
type Inputs struct {
	Requests *request.Set       // from OTLP dumps; may be nil
	Profiles *profile.Set       // from profilers; may be nil
	Series   *series.Set        // from logs and metrics; may be nil
	Flight   *recorder.InFlight // what processes have in flight; may be nil
	Heap     *recorder.Memory   // snapshots of device memory; may be nil
	Experts  *recorder.Experts  // tokens by expert; may be nil
	Weeks    Runs               // several runs; may be nil
	Devices  gpu.Options        // how the devices of Profiles are measured
	// Diags has the problems of the inputs; nil if unknown. It is read when finders look, after all inputs were read.
	Diags *trace.Diags
	// Drawn asks to also measure over time what no finder looks at, for timelines.
	Drawn bool
	// Paths asks to take Requests apart meanwhile, to show what requests waited for.
	Paths bool
	// Played asks to keep what it takes to replay the collectives of Profiles.
	Played bool
}

// Runs is what was found in several runs, one after another. Package fleet, which runs the finders on each, implements it.
type Runs interface {
	// Repeats returns subjects that are found again and again.
	Repeats() ([]finding.Finding, finding.Check)
	// Drifts returns changes of step times by day.
	Drifts() ([]finding.Finding, finding.Check)
	// Words returns one line: how many runs there are, and what repeats.
	Words() string
}

// Measured is what finders look at: everything that was measured, once, from the inputs.
type Measured struct {
	Of Inputs

	// From requests; nil without.
	Tail      *tail.Tail
	Changes   *change.Changes
	RankLoads *rank.Ranks
	Costs     *cause.Costs
	Limits    *serverlimit.Limits
	Front     *serverlimit.Front
	Crowds    *serverlimit.Crowds
	Loss      *requests.Loss
	Lives     *lifecycle.Lives
	Caches    *caches.Caches
	Run       func() *replay.Run // takes the requests apart, once
	// From logs and metrics; nil without.
	Logged *telemetry.Logged
	// Stages and Steps report whether any stages of requests, and any decode steps, were traced.
	Stages, Steps bool
	// From profiles; nil without.
	GPUs        *gpu.GPUs
	OverTime    *overtime.Timeline
	Gaps        *gaps.Gaps
	Collectives *collective.Collectives
	OfHosts     *collective.Collectives // nil if none were recorded
	Waits       *collective.WaitHistory // if Inputs.Drawn
	Chain       *collective.Chain       // if needed for costs, or if Inputs.Played

	Hang    *hang.Hang          // nil without dumps of collectives in flight
	Memory  *allocations.Memory // nil without snapshots of memory
	Routing *routing.Routing    // nil without counts of tokens by expert, and without logs
	changed []finding.Finding   // from Caches and Changes, all kinds
	ranks   func() *place.RankSet
	waits   *waits // nil unless communication is mostly waiting
	// lateHosts is, by rank that is late in host collectives, what its host did meanwhile.
	lateHosts map[string][]gaps.Work
	played    map[string]bool // ranks whose cost, from a replay, includes the idle time of their devices
}

// Measure measures everything, on all cores, but no more at a time than there are cores, as
// each measurement holds much memory. It drops the collectives of Profiles, which nobody needs
// again: in a large export, they take as much memory as everything else that is measured.
func Measure(in Inputs) Measured {
	m := Measured{Of: in, played: map[string]bool{}}
	var steps []func()
	if in.Requests != nil {
		steps = m.ofRequests()
	}
	if in.Series != nil {
		steps = append(steps, func() {
			m.Logged = telemetry.Measure(in.Series, telemetry.Options{From: in.Devices.From, To: in.Devices.To})
		})
	}
	var collector *gaps.Collector
	if in.Profiles != nil && len(in.Profiles.Ranks) > 0 {
		collector = gaps.Collect(in.Profiles)
		steps = append(steps, m.ofProfiles(collector)...)
	}
	if in.Flight != nil {
		steps = append(steps, func() { m.Hang = hang.Find(in.Flight) })
	}
	if in.Heap != nil {
		steps = append(steps, func() { m.Memory = allocations.Measure(in.Heap, nil) })
	}
	if in.Experts != nil || in.Series != nil {
		steps = append(steps, func() {
			opt := routing.Options{Series: in.Series}
			if in.Experts != nil && in.Profiles != nil && len(in.Profiles.Ranks) > 0 {
				opt.Profiles = in.Profiles
			}
			m.Routing = routing.Measure(in.Experts, opt)
		})
	}
	parallel.Each(len(steps), func(i int) { steps[i]() })
	if collector != nil {
		m.waits = newWaits(&m, collector)
		m.findLateHosts(collector)
	}
	if in.Requests != nil {
		m.Costs.SetLost(m.Lives.Lost())
		m.changed = append(m.Caches.Findings(m.Costs), m.Changes.Findings(m.Costs)...)
	}
	return m
}

// ofRequests returns the measurements of requests. Those that take longest come first, except
// that those without need of peers fill the time until peers are known.
func (m *Measured) ofRequests() []func() {
	in := m.Of
	peers := sync.OnceValue(func() *place.Groups { return place.Of(in.Requests) })
	m.ranks = func() *place.RankSet { return peers().Ranks }
	steps := []func(){
		func() { m.Changes = change.Find(peers()) },
		func() { m.Lives = lifecycle.Find(in.Requests) },
		func() { m.Caches = caches.Find(peers().Ranks) },
		func() {
			m.Tail = tail.New(peers(), tail.Options{})
			m.Costs = cause.NewCosts(in.Requests, m.Tail.List, m.Tail.Usual)
			m.Costs.AddUnanswered(m.Tail.Unanswered)
		},
		func() { m.RankLoads = rank.Measure(peers()) },
		func() { m.Limits = serverlimit.Find(peers().Ranks) },
		func() { m.Front = serverlimit.FindFront(in.Requests) },
		func() { m.Crowds = serverlimit.FindCrowds(in.Requests) },
		func() { m.Loss = requests.FindLoss(in.Requests) },
		func() { m.Stages, m.Steps = traced(in.Requests) },
	}
	if m.Run = sync.OnceValue(func() *replay.Run { return replay.Read(in.Requests) }); in.Paths {
		steps = append(steps, func() { m.Run() })
	}
	return steps
}

// ofProfiles returns the measurements of profiles. Each walks over them once.
func (m *Measured) ofProfiles(collector *gaps.Collector) []func() {
	in := m.Of
	return []func(){func() {
		devices := in.Devices
		watch := overtime.Collect(in.Profiles, overtime.Options{From: devices.From, To: devices.To, Requests: in.Requests, Everything: in.Drawn})
		devices.Gaps, devices.Watch = collector.Add, watch
		m.GPUs = gpu.Measure(in.Profiles, devices)
		m.OverTime = watch.Timeline(m.GPUs)
		m.Gaps = collector.Measure(gaps.Options{From: devices.From, To: devices.To, Brief: true, Length: m.GPUs.Length(), Keep: len(in.Profiles.Ranks) > 1, Runs: m.GPUs.Parts})
	}, func() {
		m.Collectives = collective.Measure(in.Profiles, in.Devices.From, in.Devices.To)
		m.OfHosts = collective.MeasureHosts(in.Profiles, in.Devices.From, in.Devices.To)
		if in.Drawn {
			m.Waits = m.Collectives.WaitHistory()
		}
		if m.isPlayed() {
			m.Chain = collective.ReadChain(in.Profiles)
		}
		in.Profiles.Collectives, in.Profiles.HostCollectives = nil, nil
	}}
}

// traced reports whether there are stages of requests, and decode steps, selected or not.
func traced(s *request.Set) (stages, steps bool) {
	for i := range s.All() {
		if kind := s.Kind(i); kind != request.Stage && kind != request.Unselected {
			continue
		}
		if stages = true; s.Row(i).Means == request.Stepping {
			return true, true
		}
	}
	return stages, false
}
