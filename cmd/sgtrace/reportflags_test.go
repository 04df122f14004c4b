package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// flagSamples are values for the flags of 'sgtrace report' that take one. Each keeps a part of the
// fixture and drops the rest.
var flagSamples = map[string]string{
	"by": "role", "tail": "p90", "o": "page.html", "sort": "max", "limit": "1", "metric": "ttft", "bucket": "1s", "classes": "classes.txt",
	"format": "json", "slowest": "12", "sample": "0.3", "status": "failed",
	"role": "decode", "rank": "TP0", "stage": "decode_loop", "min-dur": "12ms", "level": "1",
	"fail-on": "change", "slo": "ttft=40ms,itl=20ms", "max-memory": "1GB", "exclude": "*DP-0*", "redact-key": "key", "mute": "errors", "mute-file": "known", "hosts": "hosts.csv", "ep-size": "4", "captures": "captures",
}

// Reasons in noEffect.
const (
	otherTable = "the table is not one that the flag is about"
	oneRow     = "one stage is one row"
	oneRequest = "few requests are left, or none"
	oneRun     = "there is one run, in which no requests lose time"
)

// noEffect are flags that may legitimately change nothing in the output, alone or beside another
// flag, and why.
var noEffect = map[[2]string]string{
	{"summary", ""}:      "it is the report that is printed anyway",
	{"exclude", ""}:      "inputs that are named one by one may have none of that name",
	{"max-memory", ""}:   "it says where tables lie, not what is in them",
	{"mute", ""}:         "a selection may have no such finding",
	{"mute-file", ""}:    "as --mute",
	{"all-findings", ""}: "there may be three or fewer", {"evidence", ""}: "two sentences may be all",
	{"captures", ""}:    "no trace of the fixture has graphs",
	{"whatif", "table"}: otherTable, {"sort", "experts"}: "one file is one row", {"sort", "ep-size"}: "one file is one row",
	{"all-ranks", ""}:   "there are few ranks",
	{"hosts", ""}:       "as --all-ranks",
	{"redact", ""}:      "a report may have no name in it",
	{"redact-key", ""}:  "as --redact",
	{"metric", "table"}: otherTable, {"bucket", "table"}: otherTable, {"fail-on", "table"}: otherTable, {"slo", "table"}: otherTable, {"classes", "table"}: otherTable,
	{"min-dur", "table"}: otherTable, {"level", "table"}: otherTable,
	{"fail-on", "o"}:  "the exit status has it",
	{"sort", "stage"}: oneRow, {"sort", "hang"}: oneRow, {"limit", "stage"}: oneRow, {"classes", "host"}: "no profile is left",
	{"slowest", "fleet"}: oneRun, {"from", "fleet"}: oneRun, {"to", "fleet"}: oneRun,
	{"slowest", "rid"}: oneRequest, {"slowest", "room"}: oneRequest, {"slowest", "trace"}: oneRequest,
	{"to", "rid"}: oneRequest, {"to", "room"}: oneRequest, {"to", "trace"}: oneRequest, {"sample", "room"}: oneRequest,
	{"slowest", "from"}: oneRequest, {"slowest", "sample"}: oneRequest, {"slowest", "status"}: oneRequest, {"from", "status"}: oneRequest, {"min-dur", "stage"}: "all of one stage may be longer",
}

// reportFlagsFixture writes a small run with requests and profiles into a new directory, and
// returns flagSamples completed with ids and times of that run.
func reportFlagsFixture(t *testing.T) (samples map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	config := simulator.DefaultConfig(3)
	config.Requests, config.Output.Median, config.Prompt.Median, config.FailedTransfers = 24, 3, 64, 0.15
	config.Decode, config.Prefill = simulator.Parallel{TP: 2, PP: 1, DP: 1}, simulator.Parallel{TP: 1, PP: 1, DP: 1}
	r, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	traces := torch.DefaultConfig(r)
	traces.Layers, traces.From, traces.To, traces.RecordHost = 1, 1450*time.Millisecond, 1600*time.Millisecond, true
	if err := golden.WriteDir(".", r, &traces, nil); err != nil {
		t.Fatal(err)
	}
	smallExport(t, "node.sqlite", r.Truth().StartNs)
	if err := os.WriteFile("heap-memory.pickle", torch.MemorySnapshot(torch.NewAllocator(1, 0, 30, 400), torch.NewAllocator(2, 1, 10, 1000)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"experts", "captures"} {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("captures/bs_2_rank0.json", []byte(`{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":2}]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, data := range torch.PlayExperts(torch.ExpertConfig{Seed: 1, Mode: torch.ExpertsStat, Layers: 3, Experts: 8, TopK: 2, EP: 2, Passes: 3, Tokens: 20}).Files {
		if err := os.WriteFile(filepath.Join("experts", name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("flight", 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := torch.WriteHang("flight", torch.HangConfig{Seed: 1, TP: 2, DP: 1, Steps: 40, Fault: torch.OtherSize, Wrong: 1, Ring: 2000}, torch.AsJSON); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"classes.txt": "communication gemm\n", "key": strings.Repeat("k", 32), "known": "errors # known\n", "hosts.csv": "host,rack\nprefill-0,r1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	dump, err := os.ReadFile("otel.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	samples = maps.Clone(flagSamples)
	truth := r.Truth()
	for name, ms := range map[string]int64{"from": 1480, "to": 1520} {
		samples[name] = time.Unix(0, truth.StartNs+ms*1e6).UTC().Format(time.RFC3339Nano)
	}
	samples["rid"], samples["room"] = truth.Requests[2].RID, truth.Requests[1].BootstrapRoom
	leavesOut := func(flag string) bool {
		var out, errOut bytes.Buffer
		return run([]string{"sgtrace", "requests", "--trace", samples["trace"], "--" + flag, samples[flag], "otel.jsonl"}, nil, &out, &errOut) != exitOK
	}
	for _, m := range regexp.MustCompile(`"traceId": ?"([0-9a-f]+)"`).FindAllSubmatch(dump, -1) {
		if samples["trace"] = string(m[1]); leavesOut("rid") && leavesOut("sample") {
			break // a different request from rid, and not in the sample
		}
	}
	for _, p := range truth.Processes {
		if p.Role == "prefill" {
			samples["host"] = p.Host
		}
	}
	for _, h := range truth.Hosts {
		if h.Name == samples["host"] {
			samples["host"] = h.HostID
		}
	}
	return samples
}

// smallExport writes an export of two ranks that launched kernels and copies in ranges, one of
// which is never closed, in the 1.5 s after a Unix time in ns.
func smallExport(t *testing.T, path string, from int64) {
	t.Helper()
	db, err := nsys.Create(path, nsys.Schema2026)
	if err != nil {
		t.Fatal(err)
	}
	start := db.Table("TARGET_INFO_SESSION_START_TIME")
	start.Insert("utcEpochNs", from)
	for rank := range int64(2) {
		pid := rank + 700
		db.Insert("PROCESSES", "globalPid", pid<<24, "name", fmt.Sprintf("sglang::scheduler_TP%d", rank))
		row := func(table string, at, took int64, name map[string]string) *nsys.Table {
			x := db.Table(table)
			x.Set("start", at, "end", at+took)
			for column, text := range name {
				x.Set(column, nsys.ID(text))
			}
			return x
		}
		for i := range int64(20) {
			at := 1.4e9 + i*10e6 + rank*1e6
			name := fmt.Sprintf("gemm_%d", i%3)
			kernel := row("CUPTI_ACTIVITY_KIND_KERNEL", at, 1000*(9-3*(i%3)), map[string]string{"demangledName": name, "shortName": name})
			kernel.Insert("globalPid", pid<<24, "correlationId", i+1)
			call := row("CUPTI_ACTIVITY_KIND_RUNTIME", at-900, 500+100*(i%2), map[string]string{"nameId": []string{"cudaLaunchKernel_v7000", "cuLaunchKernelEx"}[i%2]})
			call.Insert("globalTid", pid<<24|pid, "correlationId", i+1)
			memcpy := row("CUPTI_ACTIVITY_KIND_MEMCPY", at+20000, 500+200*(i%2), nil)
			memcpy.Insert("globalPid", pid<<24, "correlationId", i+101, "bytes", 4096, "copyKind", 2-i%2)
		}
		for i, name := range []string{"load", "step", "open"} {
			x := row("NVTX_EVENTS", 1.4e9+int64(i)*60e6-2000, 50e6+int64(i)*1e6, nil)
			if name == "open" {
				x.Set("end", nil)
			}
			x.Insert("eventType", 59, "globalTid", pid<<24|pid, "text", name)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A flagged is the result of 'sgtrace report' with some flags.
type flagged struct {
	status    int
	out, page string
	err       string
}

// TestPairsOfReportFlags tries every pair of flags of 'sgtrace report': each flag changes the
// output of the other, or nothing is selected, or the pair is an error that names both. Flags that
// only some reports take are tried with such a report.
func TestPairsOfReportFlags(t *testing.T) {
	p := flagPairs{t: t, samples: reportFlagsFixture(t), seen: map[string]*flagged{}}
	var names []string
	for _, f := range reportFlags(t) {
		if f.(cli.CategorizableFlag).GetCategory() != screen.Category { // screen flags change how text looks
			names = append(names, f.Names()[0])
		}
	}
	for i, a := range names {
		for _, b := range names[i+1:] {
			p.try(a, b)
		}
	}
}

// selectedNothing matches messages about an empty selection.
var selectedNothing = regexp.MustCompile(`leaves? nothing|--from and --to select no|not there|none of|nothing matches|no trace is from|not in the inputs`)

// flagPairs tries pairs of flags.
type flagPairs struct {
	t       *testing.T
	samples map[string]string
	seen    map[string]*flagged
}

func (p *flagPairs) try(a, b string) {
	base := baseFor(a, b)
	both := p.run(base, a, b)
	names := func(flag string) bool { return strings.Contains(both.err, commandline.Dashed(flag)) }
	switch both.status {
	case exitUsage:
		if !names(a) || !names(b) {
			p.t.Errorf("%q %s %s: the error does not name both: %s", base, a, b, both.err)
		}
		return
	case exitFailed:
		if !selectedNothing.MatchString(both.err) {
			p.t.Errorf("%q %s %s: %s", base, a, b, both.err)
		}
		return
	}
	for _, flag := range [...][2]string{{a, b}, {b, a}} {
		without := p.run(base, flag[1])
		if both.out == without.out && both.page == without.page && noEffect[[2]string{flag[0], ""}] == "" && noEffect[flag] == "" {
			p.t.Errorf("%q %s %s: --%s changes nothing", base, a, b, flag[0])
		}
	}
}

// run runs 'sgtrace report' with flags, ignoring "", on the inputs that the report needs.
func (p *flagPairs) run(flags ...string) *flagged {
	args, inputs := []string{"sgtrace", "report"}, []string{"otel.jsonl", "torch", "node.sqlite"}
	var about *reports.Report
	for _, r := range reports.All {
		if slices.Contains(flags, r.Name) && (about == nil || about.Name == "by-rank") {
			about = r
		}
	}
	switch {
	case about == nil:
	case flags[0] == "summary" && !slices.Contains(flags, "whatif"): // the dump suffices for two flags of the summary
		inputs = inputs[:1]
	case about.Name == "hang":
		inputs = append(inputs, "flight")
	case about.Name == "memory":
		inputs = append(inputs, "heap-memory.pickle")
	case about.Name == "experts":
		inputs = append(inputs, "experts")
	case about.Needs == reports.Requests:
		inputs = inputs[:1]
	case about.Needs == reports.Profiles:
		inputs = inputs[1:]
	}
	for _, name := range flags {
		value, ok := p.samples[name]
		switch {
		case about == nil:
		case name == "table":
			value, ok = about.Tables[min(1, len(about.Tables)-1)], true
		case name == "sort" && about.Name == "ops": // ops has no maximum
			value = "calls"
		case name == "sort" && about.Name == "stacks":
			value = "self"
		case name == "sort" && about.Name == "hang":
			value = "waiting"
		case name == "sort" && about.Name == "experts":
			value = "tokens"
		case name == "sort" && about.Name == "critical-path":
			value = "time"
		case name == "sort" && about.Name == "memory":
			value = "peak_bytes"
		}
		switch {
		case name == "":
		case ok:
			args = append(args, commandline.Dashed(name), value)
		case name == "table":
			args = append(args, "--table", "none")
		default:
			args = append(args, commandline.Dashed(name))
		}
	}
	args = append(args, inputs...)
	key := strings.Join(args, " ")
	if p.seen[key] == nil {
		p.seen[key] = runFlagged(p.t, args)
	}
	return p.seen[key]
}

// runFlagged runs the program.
func runFlagged(t *testing.T, args []string) *flagged {
	t.Helper()
	var out, errOut bytes.Buffer
	f := &flagged{status: run(args, nil, &out, &errOut)}
	f.out, f.err = out.String(), errOut.String()
	page, err := os.ReadFile("page.html")
	if err != nil {
		return f
	}
	f.page = string(page)
	if err := os.Remove("page.html"); err != nil {
		t.Fatal(err)
	}
	return f
}

// baseFor returns the report to try two flags with: the first that takes both, or "" if one of them
// selects a report or no report takes both.
func baseFor(a, b string) string {
	if slices.ContainsFunc(reports.All, func(r *reports.Report) bool { return r.Name == a || r.Name == b }) {
		return ""
	}
	common := func(flag string) bool { return !slices.Contains(reports.Refusable(), flag) }
	for _, name := range []string{"by-stage", ""} {
		for _, r := range reports.All {
			if (name == "" || r.Name == name) && (common(a) || r.Takes(a)) && (common(b) || r.Takes(b)) {
				return r.Name
			}
		}
	}
	return ""
}

// reportFlags returns all flags of 'sgtrace report'.
func reportFlags(t *testing.T) []cli.Flag {
	t.Helper()
	for _, cmd := range (&command{}).app().Commands {
		if cmd.Name == "report" {
			return cmd.Flags
		}
	}
	t.Fatal("no command report")
	return nil
}
