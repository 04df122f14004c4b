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
	// Hosts are the places by the first eight digits of their id, none if it is all of them;
	// Server is the index of the server.
	Hosts []string `json:"hosts,omitempty"`
	// OnsetNs is when it begins, in true time, and OnsetEndNs when it has come to all
	// servers, for what comes to one after the other; 0 without an onset.
	OnsetNs    int64 `json:"onset_ns,omitempty"`
	OnsetEndNs int64 `json:"onset_end_ns,omitempty"`
	// Requests are those that arrived; Finished, GaveUp, Broken, and Open how they ended.
	Requests int `json:"requests"`
	Finished int `json:"finished"`
	GaveUp   int `json:"gave_up"`
	Broken   int `json:"broken"`
	Open     int `json:"open"`
	// ExtraNs is by how much longer the requests took with the fault than without it, where they
	// finished, summed up, and ExtraRequests how many took 1 ms longer or more. TotalNs is
	// the time of all. What was given up or broken took until then, and what never ended until nothing did anymore.
	ExtraNs       int64 `json:"extra_ns"`
	ExtraRequests int   `json:"extra_requests"`
	TotalNs       int64 `json:"total_ns"`
	// Lives tell when servers started and stopped.
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

// Places tell what there is to find in a run and where, but not what it costs.
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
	for _, e := range extra(r, calm) {
		t.ExtraNs += e.Ns
		if e.Ns >= ms {
			t.ExtraRequests++
		}
	}
	return t, nil
}

// place says where and since when the first fault is.
func (t *Truth) place(r *Run) {
	if len(r.Config.Faults) == 0 || r.Config.Faults[0].Name == "restart" && r.Config.Faults[0].Size == 0 { // the lives tell
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
			} else if l.To != 0 && f.Name == "death" { // several times, if it flaps
				t.OnsetEndNs = max(t.OnsetEndNs, l.To)
			} else if l.From > r.Start && (f.Name == "rolling deploy" || f.Name == "restart") {
				t.OnsetEndNs = max(t.OnsetEndNs, l.From)
			}
		}
	}
}

// pair reports whether the fault is of two servers.
func (f *Fault) pair() bool { return f.Other != 0 }

// RequestExtra is by how much longer a request took with the faults than without.
type RequestExtra struct {
	Request *Request
	Ns      int64
}

// took is how long a user waited for a request.
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

// extra compares the requests of a run with those that finished in another one of the same seed,
// request by request. Those that are there because of a fault are left out, but for what clients ask again.
func extra(r, calm *Run) (extra []RequestExtra) {
	took := map[int]int64{}
	for _, q := range calm.Requests {
		if q.Outcome == Finished {
			took[q.Number] = calm.took(q)
		}
	}
	for _, q := range r.Requests {
		usual, ok := took[q.Number]
		if again := q.Number >= firstRetry; again || ok && !q.Extra {
			extra = append(extra, RequestExtra{q, r.took(q) - usual})
		}
	}
	return extra
}

// An Evidence is the files that a run leaves behind of which nobody traced requests.
type Evidence struct {
	Logging
	Encoding Encoding // of metrics
	Pods     bool     // metrics of GPUs say which pod uses them
	Records  bool     // servers write a record of each request
	Prompt   string   // of all requests, in records
}

// EvidenceOf returns that of a seed: one of all layouts and encodings.
func EvidenceOf(seed uint64) Evidence {
	rng := rand.New(rand.NewPCG(seed, streamEvidence))
	how := rng.IntN(4) // one in four has neither, one both
	return Evidence{Logging{Layouts[rng.IntN(len(Layouts))], how&1 != 0}, Encoding(rng.IntN(int(Encodings))), rng.IntN(4) > 0, how&2 != 0, "a prompt"}
}

// A File is one that is left behind.
type File struct {
	Name string
	Text []byte
}

// Files returns those that a run leaves behind: the log of each server, records, metrics, and the kernel logs of
// machines on which something went wrong.
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
