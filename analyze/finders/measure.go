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

// Inputs are the tables that are looked at.
type Inputs struct {
	Requests *request.Set       // of OTLP dumps; nil without
	Profiles *profile.Set       // of profilers; nil without
	Series   *series.Set        // of logs and metrics; nil without
	Flight   *recorder.InFlight // of what processes have in flight; nil without
	Heap     *recorder.Memory   // of what allocators had of devices; nil without
	Experts  *recorder.Experts  // of which expert got how many tokens; nil without
	Weeks    Runs               // if there are several; nil without
	Devices  gpu.Options        // how the devices of Profiles are measured
	// Diags is what is wrong with the inputs; nil if nobody knows. It is read when finders
	// look, after all inputs were.
	Diags *trace.Diags
	// Drawn tells to measure over time what no finder looks at, for those who draw it.
	Drawn bool
	// Paths tells to take Requests apart meanwhile, for those who show what requests waited for.
	Paths bool
	// Played tells to keep what it takes to play the collectives of Profiles again.
	Played bool
}

// Runs are what was found in several runs, one after another. Package fleet, which asks the
// finders about each run, makes them.
type Runs interface {
	// Repeats are subjects that are found again and again.
	Repeats() ([]finding.Finding, finding.Check)
	// Drifts are changes of step times by day.
	Drifts() ([]finding.Finding, finding.Check)
	// Words says in one line how many runs there are, and what repeats.
	Words() string
}

// Measured is what finders look at: what was measured of the inputs, once.
type Measured struct {
	Of Inputs

	// Of requests; nil without.
	Tail      *tail.Tail
	Changes   *change.Changes
	RankLoads *rank.Ranks
	Costs     *cause.Costs
	Limits    *serverlimit.Limits
	Front     *serverlimit.Front
	Loss      *requests.Loss
	Lives     *lifecycle.Lives
	Caches    *caches.Caches
	Run       func() *replay.Run // the requests taken apart, once
	// Of logs and metrics; nil without.
	Logged *telemetry.Logged
	// Stages and Steps tell that some were traced: of requests, and of decoding.
	Stages, Steps bool
	// Of profiles; nil without.
	GPUs        *gpu.GPUs
	OverTime    *overtime.Timeline
	Gaps        *gaps.Gaps
	Collectives *collective.Collectives
	OfHosts     *collective.Collectives // nil if none were recorded
	Waits       *collective.WaitHistory // if they are drawn
	Chain       *collective.Chain       // if it is to be played

	Hang    *hang.Hang          // nil without dumps of what is in flight
	Memory  *allocations.Memory // nil without snapshots of memory
	Routing *routing.Routing    // nil without counts of tokens by expert, and without logs
	changed []finding.Finding   // of Changes, of all kinds
	waits   *waits              // nil where communication is not mostly waiting
	// lateHosts is what the hosts of ranks did that come late to collectives of hosts for that, by rank.
	lateHosts map[string][]gaps.Work
	played    map[string]bool // ranks whose findings cost what their devices idle, too
}

// Measure measures everything, on all cores: no more at a time than there are, since each
// holds what it compares. It gives up the collectives of Profiles, which
// nobody asks for again: of a large export, they take as much memory as what else is measured.
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

// ofRequests are the measurements of requests. What takes longest comes first, but for what need not
// wait for peers.
func (m *Measured) ofRequests() []func() {
	in := m.Of
	peers := sync.OnceValue(func() *place.Groups { return place.Of(in.Requests) })
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
		func() { m.Loss = requests.FindLoss(in.Requests) },
		func() { m.Stages, m.Steps = traced(in.Requests) },
	}
	if m.Run = sync.OnceValue(func() *replay.Run { return replay.Read(in.Requests) }); in.Paths {
		steps = append(steps, func() { m.Run() })
	}
	return steps
}

// ofProfiles are the measurements of profiles. Each walks over them once.
func (m *Measured) ofProfiles(collector *gaps.Collector) []func() {
	in := m.Of
	return []func(){func() {
		devices := in.Devices
		watch := overtime.Collect(in.Profiles, overtime.Options{From: devices.From, To: devices.To, Requests: in.Requests, Everything: in.Drawn})
		devices.Gaps, devices.Watch = collector.Add, watch
		m.GPUs = gpu.Measure(in.Profiles, devices)
		m.OverTime = watch.Timeline(m.GPUs)
		m.Gaps = collector.Measure(gaps.Options{From: devices.From, To: devices.To, Brief: true, Length: m.GPUs.Length(), Keep: len(in.Profiles.Ranks) > 1, Runs: m.GPUs.RunRanks()})
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

// traced reports whether there are stages of requests, and steps of decoding, selected or
// not.
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
