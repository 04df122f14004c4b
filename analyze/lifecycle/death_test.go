package lifecycle

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A server that dies is one finding, even if it dies several times, with all requests that failed on it.
// They are found by the URL to which the gateway sent them, since the server itself lost their rows.
func TestDeathsAreOneFinding(t *testing.T) {
	for scenario, deaths := range map[string]int{"flapping": 3, "death": 1} {
		for seed := range uint64(3) {
			run, err := cluster.Play(cluster.Find(scenario).Config(seed))
			if err != nil {
				t.Fatal(err)
			}
			lost := 0
			for i := range run.Requests {
				if run.Requests[i].Outcome == cluster.Broken {
					lost++
				}
			}
			l := Find(testset.OfCluster(t, run))
			var found []finding.Finding
			list, _ := l.Findings()
			for _, f := range list {
				if f.Cost > 0 || f.Subkind == Restart {
					found = append(found, f)
				}
			}
			if len(found) != 1 || found[0].Subkind != Death || found[0].Affected.N != lost || len(l.deaths) > deaths {
				t.Errorf("%s %d: %d requests lost; found %+v", scenario, seed, lost, found)
			}
		}
	}
}

// A rolling deployment lasts from the end of the first server until the last one serves again.
func TestRestarted(t *testing.T) {
	run, err := cluster.Play(cluster.Find("rolling_restart").Config(1))
	if err != nil {
		t.Fatal(err)
	}
	first, last := int64(0), int64(0) // as planted
	for i := range run.Servers {
		for k, l := range run.Servers[i].Lives {
			if k > 0 {
				last = max(last, l.From)
			}
			if l.To != 0 && (first == 0 || l.To < first) {
				first = l.To
			}
		}
	}
	const slack = 10_000_000_000 // ns: idle servers are invisible
	from, to := Find(testset.OfCluster(t, run)).Restarted()
	if d := int64(from) - first; max(d, -d) > slack {
		t.Errorf("restarts from %v, %d ns off", from, d)
	}
	if d := int64(to) - last; max(d, -d) > slack {
		t.Errorf("restarts to %v, %d ns off", to, d)
	}
}

// Two servers that an autoscaler repeatedly removes together are one finding. One that is restarted at another time is another.
func TestServersThatFlapTogether(t *testing.T) {
	c := cluster.Find("rolling_restart").Config(1)
	c.Faults = nil
	for _, f := range []struct {
		server int
		at     time.Duration
	}{{0, 60}, {1, 62}, {0, 110}, {1, 111}, {2, 150}} {
		c.Faults = append(c.Faults, cluster.Fault{Name: "restart", Server: f.server, At: f.at * time.Second, Every: 15 * time.Second})
	}
	run, err := cluster.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := Find(testset.OfCluster(t, run)).Findings()
	if len(found) != 2 || !strings.Contains(found[0].Text, "2 of ") || !strings.Contains(found[0].Text, "again and again") || found[0].At.Scope != place.WholeRole ||
		strings.Contains(found[0].Text, run.Name(2)) || !strings.Contains(found[1].Text, run.Name(2)) {
		t.Errorf("%+v", found)
	}
	for _, name := range []string{run.Name(0), run.Name(1)} {
		if !strings.Contains(found[0].Text, name+" 2 times") {
			t.Errorf("%q does not say how often %s was", found[0].Text, name)
		}
	}
}

// If a restart interrupts a request, and the gateway sends it to another server, the
// first server did not finish it, although its user got an answer.
func TestRestartedWithRequestsInFlight(t *testing.T) {
	s, _ := testset.Clustered(t, cluster.Find("rolling_restart"), 1)
	calm := Find(s)
	r := calm.restarts[0]
	if text := calm.outcome(calm.restarts[:1]).Text; !strings.Contains(text, "in the files had ended before") || r.old.hasResent() {
		t.Fatalf("before: %s", text)
	}
	// The server's last request becomes one that the other server, where it began later, answers.
	last := r.old.jobs[len(r.old.jobs)-1]
	lost := s.PartsOf(&s.Requests[last.request])[0]
	again := slices.IndexFunc(s.Requests, func(q request.Request) bool {
		p := &s.Parts[s.PartsOf(&q)[0]]
		return p.Start > last.start && p.Proc != s.Parts[lost].Proc
	})
	part := &s.Parts[lost]
	part.Root = request.None
	for _, k := range s.ThreadsOf(part) {
		stages := slices.Clone(s.StagesOf(k))
		s.Threads[k].Row = request.None
		s.SetStages(k, stages)
	}
	var requests []request.Request
	var parts [][]int
	for i := range s.Requests {
		if i != last.request {
			requests, parts = append(requests, s.Requests[i]), append(parts, slices.Clone(s.PartsOf(&s.Requests[i])))
		}
		if i == again {
			parts[len(parts)-1] = append(parts[len(parts)-1], lost)
		}
	}
	s.Requests = nil
	for i := range requests {
		s.AddRequest(requests[i], parts[i]...)
	}
	s.Own()
	l := Find(s)
	if got, want := l.outcome(l.restarts[:1]).Text, "1 request in flight had to be sent again, to another server"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// If the same server answers after its restart, the request did not go to another one.
	x := l.restarts[0].new
	for i := range s.Parts {
		if p := &s.Parts[i]; p.Request == l.restarts[0].old.jobs[len(l.restarts[0].old.jobs)-1].request && p.Root != request.None {
			p.Proc = x.procs[0]
		}
	}
	same := Find(s)
	if got, want := same.outcome(same.restarts[:1]).Text, "1 request in flight had to be sent again"; got != want {
		t.Errorf("to the same server: got %q, want %q", got, want)
	}
	for i := range l.Events {
		if e := &l.Events[i]; e.Server == r.old.server.at && e.What == Drain {
			t.Errorf("%s", e.Sentence())
		}
	}
}

// A server that is missing in the dump from some time on differs from one that
// stopped: gateways still answer requests that no server has.
func TestUnseen(t *testing.T) {
	c := cluster.Find("healthy").Config(2)
	run, err := cluster.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := cluster.Write(&dump, run); err != nil {
		t.Fatal(err)
	}
	at := run.Start + int64(60*time.Second)
	host := run.Name(1)
	of := map[string]bool{} // resources of the server, whose threads name the host
	testset.KeepSpans(dump.Bytes(), func(resource, span []byte) bool {
		if bytes.Contains(span, []byte("(host:"+host)) {
			of[string(resource)] = true
		}
		return false
	})
	missing := 0
	cut := testset.KeepSpans(dump.Bytes(), func(resource, span []byte) bool {
		_, end, _ := bytes.Cut(span, []byte(`"endTimeUnixNano":"`))
		gone := of[string(resource)] && string(end[:19]) >= strconv.FormatInt(at, 10) // ns, 19 digits until 2286
		if gone && bytes.Contains(span, []byte(` Req `)) {
			missing++
		}
		return !gone
	})
	found, _ := Find(testset.BuildSet(t, "cluster", bytes.NewReader(cut))).Findings()
	if len(found) != 1 || found[0].Subkind != Unseen || !strings.Contains(found[0].Text, host) || found[0].Since < trace.Time(at-5e9) || found[0].Since > trace.Time(at+5e9) {
		t.Fatalf("%d requests of %s are missing: %+v", missing, host, found)
	}
	if n := regexp.MustCompile(`answered (\d+) requests`).FindStringSubmatch(found[0].Text); n == nil {
		t.Errorf("%q", found[0].Text)
	} else if k, _ := strconv.Atoi(n[1]); k < missing*9/10 || k > missing {
		t.Errorf("%d requests are missing: %q", missing, found[0].Text)
	}
}
