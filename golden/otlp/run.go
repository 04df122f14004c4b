package otlp

import (
	"io"
	"math/rand/v2"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// writer writes the requests of a run.
type writer struct {
	Exporter *Exporter
	run      *simulator.Run
}

// Write writes the run as a Collector's file exporter would have: see [Exporter].
//
// Only the spans of requests that overlap in time are in memory at once.
func Write(w io.Writer, r *simulator.Run) error {
	rng := rand.New(rand.NewPCG(r.Config.Seed, simulator.StreamIDs))
	var resources []Resource
	for _, p := range r.Processes {
		if p.Role == simulator.RoleRouter {
			resources = append(resources, SMG())
		} else {
			resources = append(resources, SGLang(rng, r.Config.Release))
		}
	}
	x := &writer{NewExporter(w, resources), r}
	for i, q := range r.Requests {
		// Nothing of q, or of later requests, ends before q arrives.
		if err := x.Exporter.EndUntil(q.Arrival); err != nil {
			return err
		}
		x.request(i, q)
	}
	return x.Exporter.Close()
}

// gateway writes the span of the smg gateway. A request that hangs never ends, and its span is not written. The gateway is
// the first process, on the first host.
func (x *writer) gateway(rng *rand.Rand, q *simulator.Request, trace TraceID, id uint64) {
	if q.End == 0 {
		return
	}
	run := x.run
	clock := &run.Hosts[0].Clock
	g := Gateway{URI: "/generate", ID: q.ID, Status: "200", Start: clock.At(q.Arrival), End: clock.At(q.End)}
	switch q.Outcome {
	case simulator.ClientGone:
		g.Status = "499"
	case simulator.TransferFailed:
		g.Status = "500"
	}
	if q.Headers != 0 {
		g.Answered = clock.At(q.Headers)
	}
	out := g.Span(rng, trace, id)
	address := func(instance int) string { return run.Hosts[run.Instances[instance].Host].Address }
	out.Sent(clock.At(q.Sent), [2]string{"prefill_url", address(0)}, [2]string{"decode_url", address(1)})
	if q.Headers != 0 {
		out.Received(clock.At(q.Headers))
	}
	x.Exporter.End(0, q.End, out)
}
