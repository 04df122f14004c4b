package slow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
)

// A busyLog is the log of a server that decodes 64 requests, with a line every second and a prefill every three seconds.
// The throughput of a line covers the time since the decode line before, by a clock that nobody sets.
type busyLog struct {
	strings.Builder
	now, decoded time.Time
	unseen       time.Duration // time that passed in stamps, but not on the server: its lines are missing, or the clock was set
}

func (l *busyLog) say(rank, format string, args ...any) {
	fmt.Fprintf(l, "[%s%s] %s\n", l.now.Format(time.DateTime), rank, fmt.Sprintf(format, args...))
}

func (l *busyLog) prefill(running int) {
	l.say(" TP0", "Prefill batch, #new-seq: 2, #new-token: 2000, #cached-token: 0, token usage: 0.30, #running-req: %d, #queue-req: 0, ", running)
}

func (l *busyLog) decode(running int) {
	took := max(time.Second, l.now.Sub(l.decoded)-l.unseen).Seconds()
	if l.decoded.IsZero() {
		took = 1
	}
	l.decoded, l.unseen = l.now, 0
	l.say(" TP0", "Decode batch, #running-req: %d, #token: 128000, token usage: 0.30, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: 0, ", running, 2500/took)
}

// A scheduler that stands still is reported, with what its log says it was doing. One that had nothing to do is not.
func TestPauses(t *testing.T) {
	after := func(s int, what func(l *busyLog)) func(l *busyLog, i int) {
		return func(l *busyLog, i int) {
			if i == s {
				what(l)
			}
		}
	}
	wait := func(l *busyLog, s int) { l.now = l.now.Add(time.Duration(s) * time.Second) }
	for _, test := range []struct {
		name string
		at   func(l *busyLog, i int)
		want string
		sure finding.Confidence
	}{
		{"always at work", func(*busyLog, int) {}, "", ""},
		{"a profile is written", after(100, func(l *busyLog) {
			for r := range 8 {
				l.say(fmt.Sprint(" TP", r), "Stop profiling...")
			}
			wait(l, 25)
			l.say(" TP0", "Profiling done. Traces are saved to: /tmp/traces")
		}), "stood still for 25 s at 13:45:40, with 64 requests in its batch: a profile is written", finding.Certain},
		{"weights are loaded", after(100, func(l *busyLog) {
			l.say(" TP0", "Update engine weights online from disk begin. avail mem=10.00 GB")
			wait(l, 40)
			l.say(" TP0", "Update weights end.")
		}), "stood still for 40 s at 13:45:40, with 64 requests in its batch: other weights are loaded", finding.Certain},
		{"garbage is collected, twice", func(l *busyLog, i int) {
			if i == 60 || i == 120 {
				wait(l, 6)
				l.say(" TP0", "LONG GARBAGE COLLECTION DETECTED | Generation 2 | Duration: 5.9123s | # Objects: gen0=1, gen1=2, gen2=9 | This may cause latency jitter.")
			}
		}, "stood still 2 times between 13:45:00 and 13:46:13, for 12 s in total, the longest 6 s (at 13:45:00), with 64 requests in its batch: garbage collection took 5.9 s", finding.Certain},
		{"a turn of the loop takes long", after(100, func(l *busyLog) {
			wait(l, 12)
			l.WriteString("Timeout (0:00:05)!\nThread 0x00007f3b2a7fc640 (most recent call first):\n  File \"/usr/lib/python3.12/threading.py\", line 359 in wait\n" +
				"Thread 0x00007f3c5d5fe740 (most recent call first):\n  File \"/sgl/mem_cache/radix_cache.py\", line 512 in evict\n  File \"/sgl/managers/scheduler.py\", line 2010 in get_next_batch_to_run\n")
			l.say(" TP0", "slow scheduler pass: get_next_batch took 12034.2ms (>= 5000.0ms; thread stacks were dumped to stderr by the faulthandler watchdog)")
		}), "stood still for 12 s at 13:45:40, with 64 requests in its batch: get_next_batch took 12 s in one turn of its loop, and stood in evict (radix_cache.py:512)", finding.Certain},
		{"nobody knows why", after(100, func(l *busyLog) { wait(l, 12) }), "stood still for 12 s at 13:45:40, with 64 requests in its batch", finding.Likely},
		{"adapters are loaded again and again", func(l *busyLog, i int) {
			if i == 60 || i == 120 {
				l.say(" TP0", "LoRA adapter loading starts: LoRARef(lora_id=4, lora_name=a). avail mem=5.12 GB")
				wait(l, 3)
				l.say(" TP0", "LoRA adapter loading completes: LoRARef(lora_id=4, lora_name=a). avail mem=5.02 GB")
			}
		}, "stood still 2 times between 13:45:00 and 13:46:07, for 6 s in total, the longest 3 s (at 13:45:00), with 64 requests in its batch: a LoRA adapter is loaded", finding.Certain},
		{"nobody knows why, between two profiles", func(l *busyLog, i int) {
			if i == 60 || i == 120 {
				l.say(" TP0", "Stop profiling...")
			} else if i == 90 {
				wait(l, 12)
			}
		}, "stood still for 12 s at 13:45:30, with 64 requests in its batch", finding.Likely},
		{"the clock is set forward, or a part of the log is missing", after(100, func(l *busyLog) {
			wait(l, 37)
			l.unseen = 37 * time.Second
		}), "", ""},
		{"the log has a part of three years later", after(100, func(l *busyLog) { l.now = l.now.AddDate(3, 0, 0) }), "", ""},
		{"the batch ran empty", after(100, func(l *busyLog) {
			l.decode(1)
			wait(l, 60)
			l.prefill(0)
		}), "", ""},
		{"requests came at once after the batch ran empty", after(100, func(l *busyLog) {
			l.decode(0)
			wait(l, 60)
			l.prefill(0)
			l.decode(2)
		}), "", ""},
		{"a long prompt is computed", after(100, func(l *busyLog) {
			l.say(" TP0", "Prefill batch, #new-seq: 1, #new-token: 120000, #cached-token: 0, token usage: 0.30, #running-req: 64, #queue-req: 0, ")
			wait(l, 24)
		}), "", ""},
		{"the server began anew", after(100, func(l *busyLog) {
			wait(l, 60)
			l.say("", "The server is fired up and ready to roll!")
		}), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
			l := busyLog{now: begin}
			for i := range 180 {
				if i%3 == 0 {
					l.prefill(64)
				}
				l.decode(64)
				test.at(&l, i)
				wait(&l, 1)
			}
			found, check := held.Pauses(measured(t, l.String()))
			said, sure := "", finding.Confidence("")
			for _, f := range found {
				said, sure = said+f.Text, f.Confidence
				if waits := l.now.Sub(begin).Seconds() - 180; f.CostBasis != finding.RequestTime || f.Cost < 0.9*waits/180 || f.Cost > 1.1*waits/180 { // all requests run all the time, and nothing samples pauses
					t.Errorf("costs %.3f of %s, all of it stands still for %.0f of 180 s", f.Cost, f.CostBasis, waits)
				}
			}
			if !strings.HasSuffix(said, test.want) || (said == "") != (test.want == "") || sure != test.sure || check.Reason != "" {
				t.Errorf("says %q (%s; %v), want %q (%s)", said, sure, check, test.want, test.sure)
			}
		})
	}
}

// On a decode server, or without logged prefills, it is unknown when requests arrived: no pause is certain.
func TestPausesNeedPrefills(t *testing.T) {
	l := busyLog{now: time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)}
	for i := range 180 {
		if l.decode(64); i == 100 {
			l.now = l.now.Add(time.Minute)
		}
		l.now = l.now.Add(time.Second)
	}
	if found, check := held.Pauses(measured(t, l.String())); len(found) > 0 || check.Reason == "" {
		t.Errorf("finds %v, and says that it looked at %+v", found, check)
	}
}
