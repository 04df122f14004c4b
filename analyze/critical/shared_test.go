package critical

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// Paths add up in every OTLP dump of the shared data, even in damaged ones.
func TestSharedPathsAddUp(t *testing.T) {
	for _, path := range sharedDumps(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := testset.LoadFile(t, path)
			r := replay.Read(s)
			n, finished := addUp(t, s, r), countFinished(s)
			if r.Missing.Bare { // vLLM's spans have no stages
				finished = 0
			}
			if n < finished {
				t.Errorf("%d of %d finished requests have a path", n, finished)
			}
		})
	}
}

// sharedDumps are the dumps in encodings that the test reads; those in other encodings have the same spans.
func sharedDumps(t *testing.T) (list []string) {
	t.Helper()
	for _, folder := range []string{"otel", "otel2", "merge"} {
		err := filepath.WalkDir(testinput.Shared(t, "data", folder), func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(strings.TrimSuffix(path, ".zst"), ".jsonl") {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// countFinished counts the finished requests that have all of their spans.
func countFinished(s *request.Set) (n int) {
	for i := range s.Requests {
		if q := &s.Requests[i]; q.Status == request.Finished && q.Complete() && q.Metrics.E2E >= 0 {
			n++
		}
	}
	return n
}
