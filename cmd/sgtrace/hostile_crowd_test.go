//go:build unix

package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/nsys"
)

// crowd returns the size of a crowd.
func crowd() int {
	switch {
	case os.Getenv("SGTRACE_BOMB_MB") != "":
		return 1_000_000
	case withRace():
		return 5_000
	}
	return 20_000
}

// checkGrowth runs commands on two crowds, the second eight times as large as the first. Quadratic
// work takes 64 times the CPU time; linear work takes at most 8 times, and less because both
// include startup. A busy machine only ever adds time, so the minimum of up to three tries counts.
// Garbage is not collected: how often that happens jumps with the size of the heap.
// checkGrowth returns the endings of the runs on the large crowd.
func checkGrowth(t *testing.T, n int, write func(path string, n int), commands ...[]string) []ending {
	t.Helper()
	var crowds [2]child
	for i, n := range []int{n / 8, n} {
		crowds[i] = child{dir: t.TempDir(), env: []string{"GOMAXPROCS=2", "GOGC=off"}}
		write(filepath.Join(crowds[i].dir, "in"), n)
	}
	var ends []ending
	for _, args := range commands {
		few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
		for try := 0; try == 0 || try < 3 && many > 10*few; try++ {
			small, large := crowds[0].run(t, append(args, "in")...), crowds[1].run(t, append(args, "in")...)
			small.check(t, exitOK)
			large.check(t, exitOK)
			few, many = min(few, small.cpu), min(many, large.cpu)
			if try == 0 {
				ends = append(ends, large)
			}
		}
		if few == 0 || many > 10*few {
			t.Errorf("%v took %v of CPU time, and %v for a crowd eight times as large", args, few, many)
		}
	}
	return ends
}

// writeLines writes a file.
func writeLines(t testing.TB, path string, write func(w *bufio.Writer)) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// Crowds of distinct names, threads, processes, or requests cost memory in proportion, at most 3 kB
// each.
func TestCrowds(t *testing.T) {
	n := crowd() / 2
	event := func(name, pid, tid string) func(i int) string {
		return func(i int) string {
			text := fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"%s","pid":%s,"tid":%s,"ts":%d.000,"dur":1.0}`, name, pid, tid, 2*i+1)
			return strings.ReplaceAll(text, "#", strconv.Itoa(i)) + ","
		}
	}
	span := func(name, attributes string) func(i int) string {
		return func(i int) string {
			text := `{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x","name":"` + name +
				`","startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[` + attributes + `]}]}]}]}` + "\n"
			text = fmt.Sprintf(text, i+1, i+1, 1787000000000000000+1000*i, 1787000000000000900+1000*i)
			return strings.ReplaceAll(text, "#", strconv.Itoa(i))
		}
	}
	for _, test := range []struct {
		name   string
		line   func(i int) string
		status int
	}{
		{"torch names", event("kernel_#", "0", "7"), exitOK},
		{"torch threads", event("gemm", "0", "#"), exitOK},
		{"torch processes", event("gemm", "#", "1"), exitOK},
		{"torch parts", event("gemm", `"[TP#] 7"`, "1"), exitOK},
		{"otel names", span("stage#", ""), exitOK},
		{"otel keys", span("stage", `{"key":"key#","value":{"intValue":"1"}}`), exitOK},
		{"otel processes", span("Scheduler", `{"key":"host_id","value":{"stringValue":"h"}},{"key":"pid","value":{"intValue":"#"}},{"key":"thread_label","value":{"stringValue":"Scheduler"}}`), exitOK},
		{"otel requests", span("Req #", `{"key":"rid","value":{"stringValue":"rid#"}},{"key":"module","value":{"stringValue":"sglang::request"}}`), exitOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := withData(128 + 9*n/1000) // finding detection takes 4 kB per device, twice: a third of that for cold starts
			c.dir = t.TempDir()
			isTorch := strings.HasPrefix(test.name, "torch")
			writeLines(t, filepath.Join(c.dir, "in.json"), func(w *bufio.Writer) {
				if isTorch {
					w.WriteString(torchBegin)
				}
				for i := range n {
					w.WriteString(test.line(i))
				}
				if isTorch {
					w.WriteString(torchSlice(n) + "]}")
				}
			})
			c.run(t, "merge", "in.json", "-o", "out.pftrace").check(t, test.status)
			if isTorch {
				c.run(t, "report", "--kernels", "in.json").check(t, test.status)
			} else {
				c.run(t, "report", "--by-stage", "--limit", "10", "in.json").check(t, test.status)
			}
		})
	}
}

// requestLine returns a span of a request as a line of a dump. The parent of a root is 0.
func requestLine(trace, id, parent int, name string, from, to int, attributes ...string) string {
	var list []string
	for i := 0; i < len(attributes); i += 2 {
		list = append(list, fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, attributes[i], attributes[i+1]))
	}
	above := ""
	if parent != 0 {
		above = fmt.Sprintf("%016x", parent)
	}
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x","parentSpanId":%q,"name":%q,`+
		`"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}]}]}]}`+"\n",
		trace, id, above, name, 1787000000000000000+from, 1787000000000000000+to, strings.Join(list, ","))
}

// Ranks with one request each are compared in time linear in their number, not quadratic.
func TestCrowdOfRanks(t *testing.T) {
	write := func(path string, n int) {
		writeLines(t, path, func(w *bufio.Writer) {
			for i := range n {
				from, to, id := 1_000_000*i, 1_000_000*i+900_000, 3*i+1
				w.WriteString(requestLine(i+1, id, 0, "Req 1", from, to, "rid", "rid"+strconv.Itoa(i), "module", "sglang::request"))
				w.WriteString(requestLine(i+1, id+1, id, "Scheduler", from, to, "host_id", "h"+strconv.Itoa(i), "pid", "7", "thread_label", fmt.Sprintf("Scheduler%d [TP 0]", i)))
				w.WriteString(requestLine(i+1, id+2, id+1, "decode_loop", from, to))
			}
		})
	}
	checkGrowth(t, crowd()/2, write, []string{"report"}, []string{"report", "--by-rank"}, []string{"inspect"})
}

// Deeply nested stages, deeper than any real ones, are shown as they are, in time linear in their
// number.
func TestChainOfStages(t *testing.T) {
	write := func(path string, n int) {
		writeLines(t, path, func(w *bufio.Writer) {
			w.WriteString(requestLine(1, 1, 0, "Req 1", 0, 2*n, "rid", "rid1", "module", "sglang::request"))
			w.WriteString(requestLine(1, 2, 1, "Scheduler", 0, 2*n, "host_id", "h", "pid", "7", "thread_label", "Scheduler"))
			for i := range n {
				w.WriteString(requestLine(1, i+3, i+2, "stage"+strconv.Itoa(i), i, 2*n-i))
			}
		})
	}
	n := 2 * crowd()
	for _, r := range checkGrowth(t, n, write, []string{"request", "rid1"}) {
		if last := fmt.Sprintf("stage%d ", n-1); !strings.Contains(r.out, last) {
			t.Errorf("%s is missing", last)
		}
	}
}

// An export of a whole machine has too many processes to compare in pairs.
func TestCrowdOfProcesses(t *testing.T) {
	write := func(path string, n int) { writeProcesses(t, path, n) }
	checkGrowth(t, crowd()/2, write, []string{"inspect"}, []string{"report", "--kernels"}, []string{"merge", "-o", "out.pftrace"})
}

// writeProcesses writes an export of n processes with one kernel each.
func writeProcesses(t *testing.T, path string, n int) {
	t.Helper()
	db, err := nsys.Create(path, nsys.Schema2026)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []struct{ table, name, value string }{
		{"META_DATA_EXPORT", "EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"}, {"TARGET_INFO_SYSTEM_ENV", "Hostname", "node0"},
	} {
		about := db.Table(set.table)
		about.Insert("name", set.name, "value", set.value)
	}
	start := db.Table("TARGET_INFO_SESSION_START_TIME")
	start.Insert("utcEpochNs", 1_780_000_000_000_000_000)
	process, thread, kernel := db.Table("PROCESSES"), db.Table("ThreadNames"), db.Table("CUPTI_ACTIVITY_KIND_KERNEL")
	for i := range n {
		pid, name := i+2, "worker"+strconv.Itoa(i)
		process.Insert("globalPid", nsys.GlobalPID(pid), "pid", int64(pid), "name", name)
		thread.Insert("nameId", nsys.ID(name), "globalTid", nsys.GlobalTID(pid, pid))
		kernel.Insert("start", 1_000_000, "end", 1_000_000+int64(i), "streamId", 7, "globalPid", nsys.GlobalPID(pid),
			"demangledName", nsys.ID("gemm"), "shortName", nsys.ID("gemm"))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
