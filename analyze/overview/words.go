package overview

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/tokens"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A fact is a line at the top of an overview.
type fact struct{ name, text string }

// facts returns what was read and how high the load was.
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
		servers := order.EachRow(o.Servers, (*Server).String)
		add("servers", strings.Join(servers, "; "))
		add("load", o.loadText())
		if o.Goodput != nil {
			add("goodput", o.Goodput.Words())
		}
	}
	if o.Logged != nil {
		add("logs", o.Logged.Words())
		add("metrics", o.Logged.MetricWords())
		add("logged", o.Logged.LoadWords())
		add("measured", o.Metrics.PercentileWords())
		add("bench", o.Metrics.RunWords())
	}
	add("profiles", o.profilesText())
	if o.Memory != nil {
		add("memory", o.Memory.Words())
	}
	if o.Hang != nil {
		add("in flight", o.Hang.Words())
	}
	if o.Of.Weeks != nil {
		add("runs", o.Of.Weeks.Words())
	}
	add("muted", o.list().MutedText())
	if o.Requests == nil && o.GPUs != nil {
		add("tokens", tokens.Measure(o.GPUs).Words())
	}
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

// timeText says when the captures were taken, run by run if there are several.
func (o *Overview) timeText() string {
	if o.Requests != nil || o.GPUs == nil || len(o.GPUs.Runs) < 2 {
		return periodText(o.From, o.To)
	}
	const most = 4
	runs := o.GPUs.Runs
	parts := order.Each(runs[:min(most, len(runs))], func(r request.Interval) string { return periodText(r.From, r.To) })
	text := fmt.Sprintf("%d runs: %s", len(runs), strings.Join(parts, "; "))
	if more := len(runs) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// periodText says from when to when something lasted. It is empty if that is unknown.
func periodText(first, last trace.Time) string {
	if first == 0 || last < first {
		return ""
	}
	if !words.IsDate(last) {
		return words.Nearly(int64(last-first)) + "; the files do not say when: times count from an unknown start"
	}
	if first == last {
		return words.At(first, words.DateLayout) + " " + words.ZoneAt(first)
	}
	return fmt.Sprintf("%s (%s)", words.Between(first, last), words.Nearly(int64(last-first)))
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
	}{{o.RequestRate, "requests"}, {o.PromptRate, "prompt tokens"}, {o.OutputRate, "output tokens"}} {
		if !math.IsNaN(r.rate) {
			parts = append(parts, rateText(r.rate, r.of))
		}
	}
	return strings.Join(parts, ", ")
}

// fewPerUnit is the rate below which rateText changes to the next longer unit of time.
const fewPerUnit = 0.1

// rateText prints a rate per second, or per minute, hour, or day if it is too small for that.
func rateText(perSecond float64, of string) string {
	v, per := perSecond, "s"
	for _, longer := range [...]struct {
		seconds float64
		name    string
	}{{60, "min"}, {3600, "h"}, {86400, "day"}} {
		if v >= fewPerUnit || perSecond == 0 {
			break
		}
		v, per = perSecond*longer.seconds, longer.name
	}
	return words.Rate(v) + " " + of + "/" + per
}

// profilesText says whose devices were captured, and for how long.
func (o *Overview) profilesText() string {
	if o.Profiles == nil || len(o.Profiles.Ranks) == 0 {
		return ""
	}
	if o.GPUs == nil || len(o.GPUs.GPUs) == 0 {
		if o.Memory != nil {
			return "" // because a memory snapshot is a counter of a rank, too
		}
		return idleText(o.Profiles.Ranks)
	}
	var names []string // of ranks that used devices: exports name all processes of a host
	least, most := o.GPUs.GPUs[0].Captured, o.GPUs.GPUs[0].Captured
	for i := range o.GPUs.GPUs {
		gpu := &o.GPUs.GPUs[i]
		least, most = min(least, gpu.Captured), max(most, gpu.Captured)
		if len(names) == 0 || names[len(names)-1] != gpu.Rank { // ranks of the same name are adjacent
			names = append(names, gpu.Rank)
		}
	}
	captured := words.Nearly(most)
	if x := words.Nearly(least); x != captured {
		captured = x + " to " + captured
	}
	return fmt.Sprintf("%s, %s captured%s", abbreviated(names), captured, o.startText())
}

// muchStart is the share of the captured time at which the startup of CUDA is worth a mention.
const muchStart = 0.1

// startText says how long CUDA takes to start before the first kernel. It is empty if that is short.
func (o *Overview) startText() string {
	var longest gpu.Start
	for _, s := range o.GPUs.Starts {
		if s.Time > longest.Time {
			longest = s
		}
	}
	if longest.Time == 0 || float64(longest.Time) < muchStart*float64(longest.Captured) {
		return ""
	}
	library := "CUDA"
	if strings.HasPrefix(longest.Call, "hip") {
		library = "HIP"
	}
	return fmt.Sprintf("; %s takes %s of it to start, in %s, before the first kernel", library, words.Nearly(longest.Time), longest.Call)
}

// fewNames is the largest number of ranks or processes that are named one by one.
const fewNames = 3

// idleText names the processes if none of them used a device. Exports name all processes of a host, so many processes
// without a rank are only counted.
func idleText(names []string) string {
	ranks := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isRank(name) })
	switch {
	case len(ranks) > 0:
		return abbreviated(ranks)
	case len(names) > fewNames:
		return words.Thousands(int64(len(names))) + " processes"
	}
	return abbreviated(names)
}

// abbreviated names up to fewNames ranks or processes, or only the first and the last of more.
func abbreviated(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	what := "ranks"
	if !slices.ContainsFunc(names, isRank) {
		what = "processes"
	}
	if len(names) <= fewNames {
		return fmt.Sprintf("%d %s: %s", len(names), what, strings.Join(names, ", "))
	}
	return fmt.Sprintf("%d %s: %s, ... %s", len(names), what, names[0], names[len(names)-1])
}

// isRank reports whether a process is named by its rank, such as "prefill TP0 (node1)" or "rank 3".
func isRank(name string) bool {
	is, err := naming.Parse(name)
	return err == nil && (is.Rank.Global < 0 || strings.Contains(name, "rank ")) // else the number is a process ID or the like
}

// trustText says that nothing is lost or missing, at least from what was read.
func (o *Overview) trustText() string {
	if o.Diags != nil && slices.ContainsFunc(o.Diags.All(), func(d trace.Diag) bool { return d.Message == trace.InputUnread }) {
		return "nothing is lost or missing of what was read for this selection"
	}
	return "nothing is lost or missing"
}

// warningMark returns the prefix of warnings about lost data.
func warningMark(d *document.Warning) string {
	if d.Severity >= trace.DataLoss {
		return "LOST: "
	}
	return ""
}
