package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// torchEvent is an event as the tests read it back.
type torchEvent struct {
	Ph, Cat, Name string
	Pid, Tid      any
	Ts, Dur       json.Number
	ID            int
	Args          map[string]any

	start, end int64 // ns by the clock of the host
}

// number returns an argument that is a number, 0 if there is none.
func (e *torchEvent) number(key string) int {
	n, _ := e.Args[key].(json.Number)
	i, _ := strconv.Atoi(n.String())
	return i
}

// count returns the name by which truth counts an event.
func (e *torchEvent) count() string {
	switch e.Ph {
	case "M":
		return "metadata"
	case "i":
		return "instant"
	}
	return e.Cat
}

// row returns what an event is on.
func (e *torchEvent) row() string { return fmt.Sprint(e.Pid, "/", e.Tid) }

// torchTrace is a file read back.
type torchTrace struct {
	truth *TorchFile
	host  *host

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
	TraceEvents []*torchEvent
	TraceName   string
}

// ofCategory returns the slices of a category in the order of the file.
func (tr *torchTrace) ofCategory(cat string) []*torchEvent {
	var events []*torchEvent
	for _, e := range tr.TraceEvents {
		if e.Ph == "X" && e.Cat == cat {
			events = append(events, e)
		}
	}
	return events
}

// steps returns the annotations of steps.
func (tr *torchTrace) steps() []*torchEvent {
	var steps []*torchEvent
	for _, e := range tr.ofCategory("user_annotation") {
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

// readTorch parses a trace with encoding/json.
func readTorch(t *testing.T, r *Run, f *TorchFile, text []byte) *torchTrace {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	tr := &torchTrace{truth: f}
	if err := d.Decode(tr); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	for i := range r.hosts {
		if r.hosts[i].name == f.Host {
			tr.host = &r.hosts[i]
		}
	}
	for _, e := range tr.TraceEvents {
		start, err := nanoseconds(e.Ts)
		if err != nil {
			t.Fatalf("%s: %q: %v", f.Name, e.Name, err)
		}
		e.start = tr.BaseTimeNanoseconds + start
		if e.Ph != "X" {
			continue
		}
		took, err := nanoseconds(e.Dur)
		if err != nil {
			t.Fatalf("%s: %q: %v", f.Name, e.Name, err)
		}
		e.end = e.start + took
	}
	return tr
}

// schedulers returns how many schedulers a run has, each of which can be recorded.
func schedulers(r *Run) int {
	n := 0
	for i := range r.instances {
		n += len(r.instances[i].schedulers)
	}
	return n
}

// record writes the traces of all schedulers of a run and reads them back.
func record(t *testing.T, r *Run, c TorchConfig) []*torchTrace {
	t.Helper()
	var traces []*torchTrace
	for i := range schedulers(r) {
		var b bytes.Buffer
		f, err := WriteTorch(&b, r, c, i)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, readTorch(t, r, f, b.Bytes()))
	}
	return traces
}

// torchConfigs are runs and recordings that the tests look at.
var torchConfigs = []struct {
	name   string
	change func(*Config)
	record func(*TorchConfig)
}{
	{"gateway", func(c *Config) {}, func(c *TorchConfig) {}},
	{"graphs", func(c *Config) { c.Mode = PDDirect }, func(c *TorchConfig) { c.Graphs, c.Stacks = true, 0 }},
	{"old-pytorch", func(c *Config) { c.Mode = Unified }, func(c *TorchConfig) {
		c.WithSeq, c.RecordHost, c.Shapes, c.Stacks = false, false, false, 1
	}},
	{"two-hosts", twoHosts, func(c *TorchConfig) { c.EndJitter = 2 * time.Microsecond }},
	{"calm", func(c *Config) { c.Straggler.Factor = 0 }, func(c *TorchConfig) { c.Ragged, c.EndJitter = 2, 0 }},
	{"pp2", func(c *Config) {
		c.Mode, c.Unified, c.Straggler.PP = Unified, Parallel{TP: 2, PP: 2, DP: 1}, 1
	}, func(c *TorchConfig) { c.Layers = 5 }},
	{"pp16", func(c *Config) {
		c.Mode, c.Unified = Unified, Parallel{TP: 1, PP: 16, DP: 1}
		c.Straggler.Factor = 0
	}, func(c *TorchConfig) { c.Stacks, c.To = 64, c.From+40*time.Millisecond }},
	{"pp64", func(c *Config) { c.Mode, c.Unified = Unified, Parallel{TP: 2, PP: 64, DP: 1} }, func(c *TorchConfig) {
		c.Layers, c.To = 1000, c.From+30*time.Millisecond
	}},
	{"no-room", func(c *Config) { c.Straggler.Factor = 2.5 }, func(c *TorchConfig) {
		c.Layers, c.Stacks, c.EndJitter, c.To = 1000, 6, 2*time.Microsecond, c.From+60*time.Millisecond
	}},
	{"no-time", func(c *Config) {}, func(c *TorchConfig) { c.From = c.To }},
	{"nothing", func(c *Config) {}, func(c *TorchConfig) { c.From, c.To = time.Hour, time.Hour }},
}

// twoHosts is one instance on two hosts whose clocks drift apart.
func twoHosts(c *Config) {
	c.Mode, c.Unified, c.RanksPerHost = Unified, Parallel{TP: 4, PP: 1, DP: 1}, 2
	c.HostSkew, c.HostDrift = 1734500*time.Nanosecond, 12
}

// recording is a run with its traces.
type recording struct {
	run    *Run
	config TorchConfig
	traces []*torchTrace
}

func TestTorch(t *testing.T) {
	for _, test := range torchConfigs {
		t.Run(test.name, func(t *testing.T) {
			r := simulateSmall(t, 3, test.change)
			c := DefaultTorchConfig(r)
			c.To, c.Layers = c.From+250*time.Millisecond, 4
			test.record(&c)
			rec := &recording{r, c, record(t, r, c)}
			kernels := 0
			for _, tr := range rec.traces {
				kernels += len(tr.ofCategory("kernel"))
			}
			if (kernels == 0) != (c.From == c.To) {
				t.Errorf("%d kernels", kernels)
			}
			for _, check := range []struct {
				name string
				run  func(*testing.T, *recording)
			}{
				{"truth", checkTorchTruth}, {"nesting", checkTorchNesting},
				{"launches", checkLaunches}, {"collectives", checkCollectives},
			} {
				t.Run(check.name, func(t *testing.T) { check.run(t, rec) })
			}
		})
	}
}
