package testinput

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// Event is an event of a trace as the tests read it back.
type Event struct {
	Ph, Cat, Name string
	Pid, Tid      any
	Ts, Dur       json.Number
	ID            int
	Args          map[string]any

	Start, End int64 // ns on the clock of the host
}

// Number returns a numeric argument, 0 if there is none.
func (e *Event) Number(key string) int {
	n, _ := e.Args[key].(json.Number)
	i, _ := strconv.Atoi(n.String())
	return i
}

// Count returns the name of an event in truth's counts.
func (e *Event) Count() string {
	switch e.Ph {
	case "M":
		return "metadata"
	case "i":
		return "instant"
	}
	return e.Cat
}

// Row returns the row of an event.
func (e *Event) Row() string { return fmt.Sprint(e.Pid, "/", e.Tid) }

// Trace is a PyTorch trace read back.
type Trace struct {
	Truth *torch.FileTruth
	Host  *simulator.Host

	SchemaVersion       int
	DeviceProperties    []struct{ ID int }
	HostName            string `json:"host_name"`
	BaseTimeNanoseconds int64
	DistributedInfo     struct {
		Rank      int
		WorldSize int `json:"world_size"`
		PGConfig  []struct {
			Name  string `json:"pg_name"`
			Ranks []int
		} `json:"pg_config"`
	}
	TraceEvents []*Event
	TraceName   string
}

// OfCategory returns the slices of a category in the order of the file.
func (tr *Trace) OfCategory(cat string) []*Event {
	var events []*Event
	for _, e := range tr.TraceEvents {
		if e.Ph == "X" && e.Cat == cat {
			events = append(events, e)
		}
	}
	return events
}

// Steps returns the annotations of steps.
func (tr *Trace) Steps() []*Event {
	var steps []*Event
	for _, e := range tr.OfCategory("user_annotation") {
		if strings.HasPrefix(e.Name, "step[") {
			steps = append(steps, e)
		}
	}
	return steps
}

var microseconds = regexp.MustCompile(`^\d+\.\d{3}$`)

// nanoseconds parses a time of a trace.
func nanoseconds(n json.Number) (int64, error) {
	if !microseconds.MatchString(n.String()) {
		return 0, fmt.Errorf("%s has not three digits after the point", n)
	}
	return strconv.ParseInt(strings.Replace(n.String(), ".", "", 1), 10, 64)
}

// readTrace parses a trace with encoding/json.
func readTrace(t *testing.T, r *simulator.Run, f *torch.FileTruth, text []byte) *Trace {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	tr := &Trace{Truth: f}
	if err := d.Decode(tr); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	for i := range r.Hosts {
		if r.Hosts[i].Name == f.Host {
			tr.Host = &r.Hosts[i]
		}
	}
	for _, e := range tr.TraceEvents {
		start, err := nanoseconds(e.Ts)
		if err != nil {
			t.Fatalf("%s: %q: %v", f.Name, e.Name, err)
		}
		e.Start = tr.BaseTimeNanoseconds + start
		if e.Ph != "X" {
			continue
		}
		took, err := nanoseconds(e.Dur)
		if err != nil {
			t.Fatalf("%s: %q: %v", f.Name, e.Name, err)
		}
		e.End = e.Start + took
	}
	return tr
}

// Schedulers returns the number of schedulers in a run, each of which can be recorded.
func Schedulers(r *simulator.Run) int {
	n := 0
	for i := range r.Instances {
		n += len(r.Instances[i].Schedulers)
	}
	return n
}

// ReadTraces writes the traces of all schedulers of a run and reads them back.
func ReadTraces(t *testing.T, r *simulator.Run, c torch.Config) []*Trace {
	t.Helper()
	var traces []*Trace
	for i := range Schedulers(r) {
		var b bytes.Buffer
		f, err := torch.Write(&b, r, c, i)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, readTrace(t, r, f, b.Bytes()))
	}
	return traces
}

// TraceConfigs are runs and recordings for tests.
var TraceConfigs = []struct {
	Name   string
	Change func(*simulator.Config)
	Record func(*torch.Config)
}{
	{"gateway", func(c *simulator.Config) {}, func(c *torch.Config) {}},
	{"graphs", func(c *simulator.Config) { c.Mode = simulator.PDDirect }, func(c *torch.Config) { c.Graphs, c.Stacks = true, 0 }},
	{"old-pytorch", func(c *simulator.Config) { c.Mode = simulator.Unified }, func(c *torch.Config) {
		c.WithSeq, c.RecordHost, c.Shapes, c.Stacks = false, false, false, 1
	}},
	{"two-hosts", TwoHosts, func(c *torch.Config) { c.EndJitter = 2 * time.Microsecond }},
	{"calm", func(c *simulator.Config) { c.Straggler.Factor = 0 }, func(c *torch.Config) { c.Ragged, c.EndJitter = 2, 0 }},
	{"pp2", func(c *simulator.Config) {
		c.Mode, c.Unified, c.Straggler.PP = simulator.Unified, simulator.Parallel{TP: 2, PP: 2, DP: 1}, 1
	}, func(c *torch.Config) { c.Layers = 5 }},
	{"pp16", func(c *simulator.Config) {
		c.Mode, c.Unified = simulator.Unified, simulator.Parallel{TP: 1, PP: 16, DP: 1}
		c.Straggler.Factor = 0
	}, func(c *torch.Config) { c.Stacks, c.To = 64, c.From+40*time.Millisecond }},
	{"pp64", func(c *simulator.Config) {
		c.Mode, c.Unified = simulator.Unified, simulator.Parallel{TP: 2, PP: 64, DP: 1}
	}, func(c *torch.Config) {
		c.Layers, c.To = 1000, c.From+30*time.Millisecond
	}},
	{"no-room", func(c *simulator.Config) { c.Straggler.Factor = 2.5 }, func(c *torch.Config) {
		c.Layers, c.Stacks, c.EndJitter, c.To = 1000, 6, 2*time.Microsecond, c.From+60*time.Millisecond
	}},
	{"no-time", func(c *simulator.Config) {}, func(c *torch.Config) { c.From = c.To }},
	{"nothing", func(c *simulator.Config) {}, func(c *torch.Config) { c.From, c.To = time.Hour, time.Hour }},
}

// TwoHosts is one instance on two hosts whose clocks drift apart.
func TwoHosts(c *simulator.Config) {
	c.Mode, c.Unified, c.RanksPerHost = simulator.Unified, simulator.Parallel{TP: 4, PP: 1, DP: 1}, 2
	c.HostSkew, c.HostDrift = 1734500*time.Nanosecond, 12
}

// Recording is a run with its traces.
type Recording struct {
	Run    *simulator.Run
	Config torch.Config
	Traces []*Trace
}
