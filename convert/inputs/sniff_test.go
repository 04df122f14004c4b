package inputs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// If the first blocks of a file never reached the disk, its format is still recognized.
func TestZerosInFront(t *testing.T) {
	dump, _ := testinput.Simulate(t, simulator.DefaultConfig(1))
	kineto := []byte(`{"schemaVersion": 1, "traceEvents": [` + kinetoEvents(200) + `]}`)
	page := make([]byte, 3*4096)
	page[4096] = 0x0d // a leaf page of a table
	copy(page[2*4096-20:], "SQLite keeps text so")
	for _, c := range []struct {
		name string
		data []byte
		want *Format
	}{{"otlp", dump, otlpjson.Format}, {"kineto", kineto, chrometrace.Format}, {"an interrupted export", page, nsysexport.Format}} {
		for _, zeros := range []int{1, 511, 512, 4096} {
			data := append(make([]byte, zeros), c.data[zeros:]...)
			path := filepath.Join(t.TempDir(), "in")
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			s, err := Input{Name: path}.open(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Format != c.want {
				t.Errorf("%s with %d zeros in front is %+v", c.name, zeros, s.Format)
			}
			s.Close()
		}
	}
}

// kinetoEvents returns n events as PyTorch writes them.
func kinetoEvents(n int) (text string) {
	for i := range n {
		if i > 0 {
			text += ","
		}
		text += `
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1,
    "ts": 1, "dur": 2, "args": {"External id": 5}
  }`
	}
	return text
}
