package overview

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A fact is a line of the head of an overview.
type fact struct{ name, text string }

// facts say what was read and how the load was.
func (o *Overview) facts() []fact {
	facts := []fact{{"read", o.readText()}}
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, fact{name, text})
		}
	}
	add("time", o.timeText())
	if o.Requests != nil {
		add("requests", o.requestsText())
		var servers []string
		for i := range o.Servers {
			servers = append(servers, o.Servers[i].String())
		}
		add("servers", strings.Join(servers, "; "))
		add("load", o.loadText())
	}
	add("profiles", o.profilesText())
	return facts
}

// readText says how much was read.
func (o *Overview) readText() string {
	size, known := int64(0), len(o.Files) > 0
	for i := range o.Files {
		size += o.Files[i].Bytes
		known = known && o.Files[i].Bytes != request.Unknown
	}
	text := words.Counted(len(o.Files), "file")
	if len(o.Files) == 1 {
		if text = filepath.Base(o.Files[0].Name); text == "-" {
			text = "standard input"
		}
	}
	if known {
		text += ", " + fileSize(size)
	}
	if o.Requests != nil {
		text += ", " + words.Counted(o.Spans, "span")
	}
	return text
}

func fileSize(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	if n < 1_000_000 {
		return words.ThreeDigits(float64(n)/1e3) + " kB"
	}
	return words.ThreeDigits(float64(n)/1e6) + " MB"
}

// TimeText says when it was.
func (o *Overview) timeText() string {
	if o.From == 0 || o.To < o.From {
		return ""
	}
	from, to := words.Clock(o.From), words.Clock(o.To)
	if to.Year() < 2000 {
		return words.Nearly(int64(o.To-o.From)) + "; the files do not say when: times count from some beginning"
	}
	end := to.Format(words.ClockLayout)
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		end = to.Format(words.DateLayout)
	}
	return fmt.Sprintf("%s to %s UTC (%s)", from.Format(words.DateLayout), end, words.Nearly(int64(o.To-o.From)))
}

func (o *Overview) requestsText() string {
	text := words.Thousands(int64(len(o.Requests.Requests)))
	for status, n := range o.Statuses {
		if n == 0 {
			continue
		}
		sep := ", "
		if !strings.Contains(text, ":") {
			sep = ": "
		}
		text += fmt.Sprintf("%s%s %s", sep, words.Thousands(int64(n)), request.Status(status))
	}
	return text
}

func (o *Overview) loadText() string {
	var parts []string
	for _, r := range []struct {
		rate float64
		of   string
	}{{o.RequestRate, "requests/s"}, {o.PromptRate, "prompt tokens/s"}, {o.OutputRate, "output tokens/s"}} {
		if !math.IsNaN(r.rate) {
			parts = append(parts, rateText(r.rate)+" "+r.of)
		}
	}
	return strings.Join(parts, ", ")
}

func rateText(v float64) string {
	if v >= 1000 {
		return words.Thousands(int64(math.Round(v)))
	}
	return words.ThreeDigits(v)
}

// profilesText says whose devices were captured, and how long.
func (o *Overview) profilesText() string {
	if o.Profiles == nil || len(o.Profiles.Ranks) == 0 {
		return ""
	}
	if o.GPUs == nil || len(o.GPUs.GPUs) == 0 {
		return abbreviated(o.Profiles.Ranks)
	}
	var names []string // of those that used devices: exports name all processes of a host
	least, most := o.GPUs.GPUs[0].Captured, o.GPUs.GPUs[0].Captured
	for i := range o.GPUs.GPUs {
		gpu := &o.GPUs.GPUs[i]
		least, most = min(least, gpu.Captured), max(most, gpu.Captured)
		if len(names) == 0 || names[len(names)-1] != gpu.Rank { // they are in order
			names = append(names, gpu.Rank)
		}
	}
	captured := words.Nearly(most)
	if x := words.Nearly(least); x != captured {
		captured = x + " to " + captured
	}
	return fmt.Sprintf("%s, %s captured", abbreviated(names), captured)
}

// abbreviated lists a few of many names.
func abbreviated(names []string) string {
	const most = 3
	if len(names) == 1 {
		return names[0]
	}
	what := "ranks"
	if !slices.ContainsFunc(names, isRank) {
		what = "processes"
	}
	if len(names) <= most {
		return fmt.Sprintf("%d %s: %s", len(names), what, strings.Join(names, ", "))
	}
	return fmt.Sprintf("%d %s: %s, ... %s", len(names), what, names[0], names[len(names)-1])
}

// isRank reports whether a process is called by its rank: "prefill TP0 (node1)", "rank 3".
func isRank(name string) bool {
	is, err := naming.Parse(name)
	return err == nil && (is.Rank.Global < 0 || strings.Contains(name, "rank ")) // else it is a number, such as that of the process
}

// trustText says that there is no doubt.
const trustText = "nothing is lost or missing"

// latencyReport is the table of the latencies of whole requests.
func (o *Overview) latencyReport() *table.Table {
	const scale = "duration"
	ns := func(name, doc string, of func(*requests.Latency) int64) table.Field[requests.Latency] {
		return table.Field[requests.Latency]{Column: table.Column{Name: name, Unit: table.Duration, Doc: doc, Scale: scale}, Cell: func(l *requests.Latency) table.Cell { return table.Cell{N: of(l)} }}
	}
	return table.New(Schema, "", o.Latencies, []table.Field[requests.Latency]{
		table.TextColumn("latency", "e2e, ttft, itl of finished requests", func(l *requests.Latency) string { return tail.MetricWords[tail.Metric(l.Metric)] }),
		table.CountColumn("n", "how many", func(l *requests.Latency) int64 { return int64(l.N) }),
		ns("p50", "median, nearest rank", func(l *requests.Latency) int64 { return l.P50 }),
		ns("p90", "90th percentile, nearest rank", func(l *requests.Latency) int64 { return l.P90 }),
		ns("p99", "99th percentile, nearest rank", func(l *requests.Latency) int64 { return l.P99 }),
		ns("max", "longest", func(l *requests.Latency) int64 { return l.Max }),
	})
}

// lookedText says what was looked at.
func (o *Overview) lookedText() string {
	if len(o.Looked) == 0 {
		return "the files hold nothing that findings are made of; 'sgtrace inspect' lists what they hold"
	}
	return "looked at " + strings.Join(o.Looked, "; ")
}

// findingsTitle heads the list of findings.
func (o *Overview) findingsTitle() string {
	switch n := len(o.Findings); {
	case n == 0 && len(o.Looked) == 0:
		return "There is nothing to look at"
	case n == 0:
		return "Nothing stands out"
	case n > mostFindings:
		return fmt.Sprintf("%d of %d findings, those that cost most", mostFindings, n)
	case n == 1:
		return "1 finding"
	default:
		return fmt.Sprintf("%d findings, by what they cost", n)
	}
}

// mostFindings is how many findings people are shown at once.
const mostFindings = 3

// costText says what a finding costs.
func (o *Overview) costText(f *finding.Finding) string {
	part := fmt.Sprintf("%.0f %%", 100*f.Weight)
	if f.Weight < 0.005 {
		part = "less than 1 %"
	}
	switch {
	case f.Kind == finding.Errors:
		return part + " of the requests"
	case f.Kind == finding.GPU || o.Requests == nil:
		return "costs " + part + " of the GPUs' time"
	}
	return "costs " + part + " of the requests' time"
}

// doubtMark tells how bad a doubt is.
func (d *Warning) warningMark() string {
	if d.Severity >= trace.DataLoss {
		return "LOST: "
	}
	return ""
}
