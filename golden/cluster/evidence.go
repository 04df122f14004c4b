package cluster

import (
	"bytes"
	"io"
	"math/rand/v2"
)

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
