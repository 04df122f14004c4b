package simulator

// CountTruth has the numbers of requests, spans, and events in the files.
type CountTruth struct {
	Requests  int         `json:"requests"`
	Outcomes  []NameCount `json:"outcomes"`
	Steps     []NameCount `json:"steps"` // forward passes, by mode
	Spans     int         `json:"spans"`
	SpanKinds []NameCount `json:"span_kinds"`
	Slices    []NameCount `json:"slices"` // by stage
	Events    []NameCount `json:"events"`
	// Errors counts the scheduler threads with error status, by kind.
	Errors []NameCount `json:"errors"`
}

// NameCount is a row of a count. Rows with zero are included.
type NameCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// String returns the kind of error of a thread, empty for none.
func (e Ending) String() string { return endingNames[e] }

var endingNames = [...]string{
	EndedNormally:       "",
	EndedQueueFull:      "queue_full",
	EndedDropped:        "auto_closed",
	EndedTransferFailed: "transfer_failed",
}

// tally counts while the survey goes on.
type tally struct {
	outcomes          map[Outcome]int
	roots, threads    int
	gateways          int
	slices            [len(stageTable)]int
	schedule, retract int
	sending, received int
	errors            [len(endingNames)]int
}

// request counts what belongs to a request as a whole.
func (t *tally) request(r *Run, q *Request) {
	if t.outcomes == nil {
		t.outcomes = make(map[Outcome]int)
	}
	t.outcomes[q.Outcome]++
	t.roots += len(q.Halves)
	for _, h := range q.Halves {
		t.errors[h.Ending] += len(h.ranks)
	}
	if r.Config.Mode != PDGateway {
		return
	}
	t.gateways++
	t.sending++
	if q.Headers != 0 {
		t.received++
	}
}

// thread counts a thread with its stages and events.
func (t *tally) thread(th *Thread) {
	t.threads++
	for i := range th.Stages {
		t.slices[th.Stages[i].kind]++
	}
	for _, e := range th.Events {
		if e.Step < 0 {
			t.retract++
		} else {
			t.schedule++
		}
	}
}

// counts returns the counts.
func (s *survey) counts() CountTruth {
	t := &s.tally
	c := CountTruth{Requests: len(s.run.Requests)}
	for _, o := range outcomes {
		c.Outcomes = append(c.Outcomes, NameCount{string(o), t.outcomes[o]})
	}
	steps := map[ForwardMode]int{}
	for i := range s.run.Steps {
		steps[s.run.Steps[i].Mode]++
	}
	for _, m := range []ForwardMode{ModePrefill, ModePrebuilt, ModeDecode} {
		c.Steps = append(c.Steps, NameCount{string(m), steps[m]})
	}
	slices := 0
	for k, row := range stageTable {
		slices += t.slices[k]
		c.Slices = append(c.Slices, NameCount{row.name, t.slices[k]})
	}
	c.SpanKinds = []NameCount{{"gateway", t.gateways}, {"root", t.roots}, {"thread", t.threads}, {"slice", slices}}
	c.Spans = t.gateways + t.roots + t.threads + slices
	c.Events = []NameCount{
		{"schedule", t.schedule}, {"retract", t.retract},
		{"Sending concurrent requests", t.sending}, {"Received concurrent requests", t.received},
	}
	for e, name := range endingNames {
		if name != "" {
			c.Errors = append(c.Errors, NameCount{name, t.errors[e]})
		}
	}
	return c
}
