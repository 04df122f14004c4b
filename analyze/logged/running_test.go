package logged_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/logged"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/serverlog"
	"github.com/sgtrace/sgtrace/profile/flight"
	"github.com/sgtrace/sgtrace/request/record"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// measured is what the log of a server says.
func measured(t *testing.T, text string) *logged.Logged {
	t.Helper()
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	in := &format.Input{Name: "s.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := serverlog.Format.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Series: set, Records: record.New(set), Flight: flight.New(set.Syms)}); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	return logged.Measure(set, logged.Options{})
}

// That more requests run is what a server is for. It is said only of a server that was in a steady
// state before, took in no more, and whose requests pay for it.
func TestRunningRequestsGrow(t *testing.T) {
	type second struct{ came, running, queued, speed int }
	for _, test := range []struct {
		name string
		at   func(i int) second
		want string
	}{
		{"a batch fills up at the start, then stays", func(i int) second {
			if i < 16 {
				return second{4, 4 * i, 60 - 4*i, 0}
			}
			return second{0, 64, 0, 8000}
		}, ""},
		{"answers get longer, nobody waits and no token takes longer", func(i int) second {
			if i < 40 {
				return second{4, 16, 0, 1600}
			}
			return second{4, 64, 0, 6400}
		}, ""},
		{"tokens take four times as long", func(i int) second {
			if i < 40 {
				return second{4, 16, 0, 1600}
			}
			return second{4, 64, 0, 1600}
		}, "a token takes"},
		{"the batch grows, and then requests wait", func(i int) second {
			if i < 40 {
				return second{4, 16, 0, 1600}
			}
			return second{4, 64, 30, 6400}
		}, "wait, 0 before"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var text strings.Builder
			begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
			for i := range 100 {
				s, stamp := test.at(i), begin.Add(time.Duration(i)*time.Second).Format(time.DateTime)
				if s.came > 0 && i%4 == 0 {
					fmt.Fprintf(&text, "[%s TP0] Prefill batch, #new-seq: %d, #new-token: 400, #cached-token: 0, token usage: 0.10, #running-req: %d, #queue-req: %d, \n", stamp, 4*s.came, s.running, s.queued)
				}
				if s.speed > 0 {
					for range 2 {
						fmt.Fprintf(&text, "[%s TP0] Decode batch, #running-req: %d, #token: 9000, token usage: 0.10, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: %d, \n", stamp, s.running, s.speed, s.queued)
					}
				}
			}
			found, _ := measured(t, text.String()).Changes()
			said := ""
			for _, f := range found {
				said += f.Text
				for _, e := range f.Evidence {
					said += "; " + e.Text
				}
			}
			if (said == "") != (test.want == "") || !strings.Contains(said, test.want) {
				t.Errorf("says %q, want %q", said, test.want)
			}
		})
	}
}

// A queue that becomes longer all the time changes at no time, and is told nevertheless: of a prefill
// server whose decode server is away, prompts come in, and none goes on.
func TestQueueGrowsFromTheBeginning(t *testing.T) {
	for _, test := range []struct {
		name   string
		queued func(i int) int
		want   string
	}{
		{"none goes on", func(i int) int { return 4 * i }, "ever more requests wait for their decode server on prefill"},
		{"some wait", func(i int) int { return 12 + i%3 }, ""},
		{"as many as before go on in the end", func(i int) int { return min(4*i, 160-4*i) }, ""},
		{"some more wait in the end", func(i int) int { return 100 + i/2 }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var text strings.Builder
			begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
			for i := range 40 {
				fmt.Fprintf(&text, "[%s TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, #prealloc-req: %d, #inflight-req: 1, \n",
					begin.Add(time.Duration(i)*time.Second).Format(time.DateTime), test.queued(i))
			}
			list, _ := measured(t, text.String()).Changes()
			said := ""
			for i := range list {
				said += list[i].Text
			}
			if test.want == "" && strings.Contains(said, "ever more") || !strings.Contains(said, test.want) {
				t.Errorf("found %q, want %q", said, test.want)
			}
		})
	}
}

// Two lines before a retraction tell what a token takes if they agree.
func TestRetractionSaysWhatTokensTook(t *testing.T) {
	const batch = "[%s TP0] Decode batch, #running-req: 40, #token: 9000, token usage: 0.99, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: 9, \n"
	for _, test := range []struct {
		before []int // tokens/s
		tells  bool
	}{{[]int{4000, 3800}, true}, {[]int{4000, 900}, false}, {[]int{4000}, false}, {[]int{4000, 900, 3900}, true}} {
		var text strings.Builder
		at := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
		stamp := func() string { at = at.Add(time.Second); return at.Format(time.DateTime) }
		for _, speed := range test.before {
			fmt.Fprintf(&text, batch, stamp(), speed)
		}
		fmt.Fprintf(&text, "[%s TP0] KV cache pool is full. Retract requests. #retracted_reqs: 4, #new_token_ratio: 0.0980 -> 0.3487\n", stamp())
		for range 5 {
			fmt.Fprintf(&text, batch, stamp(), 400)
		}
		found, _ := measured(t, text.String()).Retractions()
		if len(found) != 1 {
			t.Fatalf("%v: %d findings", test.before, len(found))
		}
		if tells := strings.HasPrefix(found[0].Evidence[0].Text, "a token takes 10"); tells != test.tells {
			t.Errorf("%v tokens/s before: %s", test.before, found[0].Evidence[0].Text)
		}
	}
}
