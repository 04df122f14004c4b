package cluster

import (
	"bytes"
	"io"
	"math/rand/v2"
)

// Truth lists what there is to find in a run, and its costs.
type Truth struct {
	Scenario string `json:"scenario"`
	Why      string `json:"why"`
	Healthy  bool   `json:"healthy"`
	// Words, Says, Stage: see [Scenario].
	Words string `json:"words,omitempty"`
	Says  string `json:"says,omitempty"`
	Stage string `json:"stage,omitempty"`
	// Hosts are the places by the first eight digits of their id, or none if it is all of them; Server is the index of the
	// server.
	Hosts []string `json:"hosts,omitempty"`
	// OnsetNs is when it begins, in true time, and OnsetEndNs when it has reached all servers, if it reaches one after the
	// other; 0 without an onset.
	OnsetNs    int64 `json:"onset_ns,omitempty"`
	OnsetEndNs int64 `json:"onset_end_ns,omitempty"`
	// Requests is the number that arrived; Finished, GaveUp, Broken, and Open are the numbers of their outcomes.
	Requests int `json:"requests"`
	Finished int `json:"finished"`
	GaveUp   int `json:"gave_up"`
	Broken   int `json:"broken"`
	Open     int `json:"open"`
	// ExtraNs is the sum of the additional times that requests took because of the fault, if they finished, and ExtraRequests
	// the number of requests with at least 1 ms more. TotalNs is the time of all. Requests that were given up or broken count
	// until then, and those that never ended until everything stopped.
	ExtraNs       int64 `json:"extra_ns"`
	ExtraRequests int   `json:"extra_requests"`
	TotalNs       int64 `json:"total_ns"`
	// Lives are the times at which servers started and stopped.
	Lives []LifeTruth `json:"lives"`
}

// LifeTruth is one life of a server.
type LifeTruth struct {
	Host   string `json:"host"`
	Role   Role   `json:"role,omitempty"`
	Model  string `json:"model"`
	PID    int    `json:"pid"` // of its tokenizer
	FromNs int64  `json:"from_ns"`
	ToNs   int64  `json:"to_ns,omitempty"`
	HungNs int64  `json:"hung_ns,omitempty"`
}

// Truth plays the run without its faults, too, and compares.
func (s *Scenario) Truth(r *Run) (*Truth, error) { return s.truth(r, true) }

// Places returns what there is to find in a run and where, but not its costs.
func (s *Scenario) Places(r *Run) *Truth {
	t, _ := s.truth(r, false)
	return t
}

func (s *Scenario) truth(r *Run, compare bool) (*Truth, error) {
	t := &Truth{Scenario: s.Name, Why: s.Doc, Healthy: s.Healthy, Words: s.Words, Says: s.Says, Stage: s.Stage, Requests: len(r.Requests)}
	for _, q := range r.Requests {
		t.TotalNs += r.took(q)
		switch q.Outcome {
		case Finished:
			t.Finished++
		case GaveUp:
			t.GaveUp++
		case Broken:
			t.Broken++
		case Open:
			t.Open++
		}
	}
	for i := range r.Servers {
		v := &r.Servers[i]
		for _, l := range v.Lives {
			t.Lives = append(t.Lives, LifeTruth{r.Name(i), v.Role, r.Config.Pools[v.Pool].Model, r.Processes[l.Tokenizer].PID, l.From, l.To, l.Hung})
		}
	}
	t.place(r)
	if !compare {
		return t, nil
	}
	calm, err := Play(r.Config.Calm())
	if err != nil {
		return nil, err
	}
	for _, ns := range extra(r, calm) {
		t.ExtraNs += ns
		if ns >= ms {
			t.ExtraRequests++
		}
	}
	return t, nil
}

// place sets the place and the onset of the first fault.
func (t *Truth) place(r *Run) {
	if len(r.Config.Faults) == 0 || r.Config.Faults[0].Name == "restart" && r.Config.Faults[0].Size == 0 { // the lives show it
		return
	}
	f := &r.Config.Faults[0]
	t.OnsetNs = r.Start + int64(f.At)
	t.OnsetEndNs = t.OnsetNs
	for i := range r.Servers {
		if f.Server == i || f.pair() && f.Other == i {
			t.Hosts = append(t.Hosts, r.Name(i))
		}
		for _, l := range r.Servers[i].Lives {
			if l.Hung != 0 {
				t.OnsetNs, t.OnsetEndNs = l.Hung, l.Hung
			} else if l.To != 0 && f.Name == "death" { // repeated deaths, if it flaps
				t.OnsetEndNs = max(t.OnsetEndNs, l.To)
			} else if l.From > r.Start && (f.Name == "rolling deploy" || f.Name == "restart") {
				t.OnsetEndNs = max(t.OnsetEndNs, l.From)
			}
		}
	}
}

// pair reports whether the fault concerns two servers.
func (f *Fault) pair() bool { return f.Other != 0 }

// took returns how long a user waited for a request.
func (r *Run) took(q *Request) int64 {
	if q.Outcome != Open {
		return q.End - q.Arrival
	}
	last := q.Arrival
	for _, other := range r.Requests {
		last = max(last, other.Arrival, other.End)
	}
	return last - q.Arrival
}

// extra returns how many ns longer each request of a run took than in another run of the same seed, where it finished. It
// ignores requests caused by a fault, except for clients' retries.
func extra(r, calm *Run) (extra []int64) {
	took := map[int]int64{}
	for _, q := range calm.Requests {
		if q.Outcome == Finished {
			took[q.Number] = calm.took(q)
		}
	}
	for _, q := range r.Requests {
		usual, ok := took[q.Number]
		if again := q.Number >= firstRetry; again || ok && !q.Extra {
			extra = append(extra, r.took(q)-usual)
		}
	}
	return extra
}

// An Evidence is the files of a run without tracing.
type Evidence struct {
	Logging
	Encoding Encoding // of metrics
	Pods     bool     // metrics of GPUs have the pod that uses them
	Records  bool     // servers write a record of each request
	Prompt   string   // of all requests, in records
}

// EvidenceOf returns the evidence for a seed, with one of the layouts and encodings.
func EvidenceOf(seed uint64) Evidence {
	rng := rand.New(rand.NewPCG(seed, streamEvidence))
	how := rng.IntN(4) // one in four has neither, one both
	return Evidence{Logging{Layouts[rng.IntN(len(Layouts))], how&1 != 0}, Encoding(rng.IntN(int(Encodings))), rng.IntN(4) > 0, how&2 != 0, "a prompt"}
}

// A File is one of the files.
type File struct {
	Name string
	Text []byte
}

// Files returns the files of a run: the log of each server, records, metrics, and the kernel logs of machines on which
// something went wrong.
func (e *Evidence) Files(r *Run) (list []File, err error) {
	add := func(name string, write func(w io.Writer) error) {
		var b bytes.Buffer
		if err == nil {
			err = write(&b)
		}
		if b.Len() > 0 {
			list = append(list, File{name, b.Bytes()})
		}
	}
	for _, i := range r.fronts() {
		add("logs/"+r.pod(i)+".log", func(w io.Writer) error { return WriteLog(w, r, i, e.Logging) })
		if e.Records {
			add("records/"+r.pod(i)+"/sglang-request-metrics-20260817_09.log", func(w io.Writer) error { return WriteRecords(w, r, i, e.Prompt) })
		}
	}
	add("metrics/"+[]string{"range.json", "dump.om", "metrics.prom"}[e.Encoding], func(w io.Writer) error { return writeMetrics(w, r, e.Encoding, e.Pods) })
	for node := range r.nodes() {
		add("node"+string(rune('1'+node))+"/dmesg.log", func(w io.Writer) error { return writeKernelLog(w, r, node) })
	}
	return list, err
}
