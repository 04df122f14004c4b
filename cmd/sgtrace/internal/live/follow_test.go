package live

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// However a dump is written, every request is printed once, after it has ended.
func TestFollowPrintsRequestsOnce(t *testing.T) {
	config := simulator.DefaultConfig(4)
	config.Requests = 30
	dump, truth := testinput.Simulate(t, config)
	lines := bytes.SplitAfter(dump, []byte("\n"))
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := Follower{Out: &out, Selected: &commandline.Selected{}, Dump: inputs.NewGrowing("dump", new(trace.Diags)), Redact: func(*request.Set) {}}
		pieces := make(chan []byte)
		go func() {
			for _, line := range lines {
				pieces <- line
				time.Sleep(time.Second)
			}
			close(pieces)
		}()
		if err := f.run(pieces); err != nil {
			t.Fatal(err)
		}
		for _, r := range truth.Requests {
			id := r.FullID
			if strings.Count(out.String(), id) == 0 {
				id = r.RID
			}
			if n := strings.Count(out.String(), id); n != 1 {
				t.Errorf("request %s (%s) is printed %d times", r.FullID, r.Outcome, n)
			}
		}
	})
}
