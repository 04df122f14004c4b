package cluster

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A Batch is what a server logs about a batch. Times are true.
type Batch struct {
	At                                            int64
	Prefill                                       bool
	NewSeqs, NewTokens, CachedTokens              int // of a prefill
	Running, Queued, KV                           int // requests, requests, tokens
	Given                                         int // tokens since the previous decode line
	Since                                         int64
	Bootstrapping, Sending, Preallocating, Coming int
	Retracted                                     int // retracted requests that wait to resume
}

// everySteps is the number of decode steps between log lines.
const everySteps = 40

// logPrefill records a prefill batch when it is formed, like SGLang's scheduler.
func (v *server) logPrefill(batch []portion) {
	b := v.batchNow(true)
	for _, p := range batch {
		b.NewSeqs++
		b.NewTokens += p.tokens
		if len(p.job.half.Chunks) == 0 && p.job.half.Prefilled == 0 {
			b.CachedTokens += p.job.req.Cached
		}
	}
	v.note(b)
}

// logDecode records a decode step, and logs one out of everySteps.
func (v *server) logDecode(given int) {
	v.steps, v.given = v.steps+1, v.given+given
	if v.steps%everySteps != 0 {
		return
	}
	b := v.batchNow(false)
	b.Given, b.Since = v.given, v.given0
	v.given, v.given0 = 0, b.At
	v.note(b)
}

func (v *server) note(b Batch) {
	s := &v.sim.run.Servers[v.index]
	s.Batches = append(s.Batches, b)
}

// batchNow returns the state of a server.
func (v *server) batchNow(prefill bool) Batch {
	b := Batch{At: v.sim.Agenda.Now, Prefill: prefill, Running: len(v.running), Queued: len(v.waiting), KV: v.held, Preallocating: len(v.prealloc), Retracted: len(v.retracted)}
	for _, j := range v.jobs {
		switch h := j.half; {
		case v.role == Prefill && h.Queued != 0 && h.Waiting == 0:
			b.Bootstrapping++
		case v.role == Prefill && h.TransferStart != 0:
			b.Sending++
		case v.role == Decode && h.Reserved != 0 && h.Waiting == 0:
			b.Coming++
		}
	}
	return b
}

// A Layout is the log format of a release, and the wrapping of a log collector.
type Layout struct {
	Name string
	Zone time.Duration // of the local clock, east of UTC
	// Batch follows the word batch: ".", or ",". Comma ends lines with one. Graph is the label of the graph field, at the End
	// of a line or before its throughput; "" omits it.
	Batch, Graph string
	Comma, End   bool
	Millis       bool // in stamps
	Pending      bool // waiting prompt tokens are logged
	// Wrap adds the wrapping to a line, which was written at a time.
	Wrap func(at time.Time, pod, line string) string
}

// Layouts are the formats of releases since 2024, in the wrappings of several collectors.
var Layouts = []Layout{
	{Name: "2024-09", Batch: "."},
	{Name: "2025-05", Batch: ".", Graph: "cuda", Zone: -7 * time.Hour},
	{Name: "2025-11", Batch: ",", Graph: "cuda", Comma: true, Zone: 9 * time.Hour, Wrap: func(_ time.Time, pod, line string) string {
		return "(SGLangEngine pid=35555, ip=" + pod + ") " + line
	}},
	{Name: "2026-01", Batch: ",", Graph: "npu", End: true, Zone: 5*time.Hour + 30*time.Minute, Wrap: func(at time.Time, _, line string) string {
		return at.UTC().Format("2006-01-02T15:04:05.000000000Z") + " " + line
	}},
	{Name: "2026-04", Batch: ",", Graph: "cuda", End: true, Pending: true, Zone: -4 * time.Hour, Wrap: func(at time.Time, _, line string) string {
		return `{"log":"` + strings.ReplaceAll(line, `"`, `\"`) + `\n","stream":"stdout","time":"` + at.UTC().Format("2006-01-02T15:04:05.000000000Z") + `"}`
	}},
	{Name: "2026-07", Batch: ",", Graph: "cuda", Pending: true, Millis: true, Zone: 2 * time.Hour, Wrap: func(at time.Time, pod, line string) string {
		return at.UTC().Format("Jan _2 15:04:05") + " " + pod + " sglang[4100]: " + line
	}},
}

// A Logging is what a server logs.
type Logging struct {
	Layout
	Stats bool // ReqTimeStats of each request
}

// A line is a line of a log: its time on the host's clock, its source, and its text.
type line struct {
	at         int64
	rank, text string
}

// WriteLog writes the log of a server, with all its DP ranks.
func WriteLog(w io.Writer, r *Run, front int, l Logging) error {
	lines := logged(r, front, l)
	for _, x := range lines {
		at := time.Unix(0, x.at).UTC().Add(l.Zone)
		stamp := at.Format("2006-01-02 15:04:05")
		if l.Millis {
			stamp = at.Format("2006-01-02 15:04:05.000")
		}
		text := fmt.Sprintf("[%s%s] %s", stamp, x.rank, x.text)
		if x.text == "" || x.text[0] == ' ' || strings.HasPrefix(x.text, "Traceback") || strings.Contains(x.text, "Error:") && !strings.Contains(x.text, "exception") {
			text = x.text // the rest of a multiline message
		}
		if l.Wrap != nil {
			text = l.Wrap(time.Unix(0, x.at), r.pod(front), text)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// logged returns the lines of a server, in order.
func logged(r *Run, front int, l Logging) (lines []line) {
	clock := &r.Hosts[r.Servers[front].Host].Clock
	for _, i := range r.ranks(front) {
		s := &r.Servers[i]
		rank := r.prefix(i)
		add := func(at int64, rank, text string) {
			if at > 0 && at <= r.End {
				lines = append(lines, line{clock.At(at), rank, text})
			}
		}
		for k := range s.Lives {
			if from := max(s.Lives[k].From, r.Start); i == front {
				add(from, "", "The server is fired up and ready to roll!")
			}
		}
		for _, x := range s.Said {
			for text := range strings.SplitSeq(x.Text, "\n") {
				add(x.At, rank, text)
			}
		}
		most, last := r.Config.Pools[s.Pool].KV, int64(0)
		for k := range s.Batches {
			b := &s.Batches[k]
			if b.Prefill {
				add(b.At, rank, l.prefill(s.Role, b, max(last, r.Start), most))
				last = b.At
			} else {
				add(b.At, rank, l.decode(s.Role, b, most))
			}
		}
		if !l.Stats {
			continue
		}
		for _, q := range r.Requests {
			for _, h := range q.Halves {
				if h.Server == i && h.Ended != 0 && h.Formed != 0 {
					add(h.Ended, rank, stats(s.Role, q, h, clock))
				}
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	return lines
}

// prefix returns the ranks after the stamp of a scheduler's lines. A dimension with only one rank is left out.
func (r *Run) prefix(server int) (text string) {
	s := &r.Servers[server]
	tp := r.Config.Pools[s.Pool].TP
	if s.DP >= 0 {
		return fmt.Sprintf(" DP%d TP%d", s.DP, s.DP*tp)
	}
	if tp > 1 {
		return " TP0"
	}
	return ""
}

func (l *Layout) prefill(role Role, b *Batch, before int64, most int) string {
	parts := []string{"Prefill batch" + l.Batch}
	if l.Batch == "." {
		parts[0] += fmt.Sprintf(" #new-seq: %d", b.NewSeqs)
	} else {
		parts = append(parts, fmt.Sprintf("#new-seq: %d", b.NewSeqs))
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	add("#new-token: %d", b.NewTokens)
	add("#cached-token: %d", b.CachedTokens)
	add("token usage: %.2f", float64(b.KV)/float64(most))
	add("#running-req: %d", b.Running)
	add("#queue-req: %d", b.Queued)
	if l.Pending {
		add("#pending-token: 0")
	}
	if role == Prefill {
		add("#bootstrap-req: %d", b.Bootstrapping)
		add("#inflight-req: %d", b.Sending)
	}
	return l.close(parts, fmt.Sprintf("input throughput (token/s): %.2f", float64(b.NewTokens)/(float64(b.At-before)/1e9+1e-9)), "False")
}

func (l *Layout) decode(role Role, b *Batch, most int) string {
	first := fmt.Sprintf("#running-req: %d", b.Running)
	parts := []string{"Decode batch" + l.Batch + " " + first}
	if l.Batch == "," {
		parts = []string{"Decode batch", first}
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	add("#token: %d", b.KV)
	add("token usage: %.2f", float64(b.KV)/float64(most))
	if role == Decode {
		add("pre-allocated usage: 0.00")
		add("#prealloc-req: %d", b.Preallocating)
		add("#transfer-req: %d", b.Coming)
		add("#retracted-req: %d", b.Retracted)
	}
	return l.close(parts, fmt.Sprintf("gen throughput (token/s): %.2f, #queue-req: %d", float64(b.Given)/(float64(b.At-b.Since)/1e9), b.Queued), "True")
}

// close adds the throughput, and whether the batch ran as a graph.
func (l *Layout) close(parts []string, rate, graph string) string {
	graph = l.Graph + " graph: " + graph
	switch {
	case l.Graph == "":
		parts = append(parts, rate)
	case l.End:
		parts = append(parts, rate, graph)
	default:
		parts = append(parts, graph, rate)
	}
	text := strings.Replace(strings.Join(parts, ", "), "batch,,", "batch,", 1)
	if l.Comma {
		text += ", "
	}
	return text
}
