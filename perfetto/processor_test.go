package perfetto

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

// Perfetto's own importer reports no errors and finds what the model contains.
func TestTraceProcessorAgrees(t *testing.T) {
	processor := readback.Processor(t)
	r := rand.New(rand.NewPCG(9, 10))
	for range 8 {
		tr := readback.Model(readback.RandomBytes(r, 1500))
		data := encode(t, tr)
		readback.CheckImport(t, processor, data)
		askIntervals(t, processor, tr, data)
		askArrows(t, processor, tr, data)
	}
}

func askIntervals(t *testing.T, processor string, tr *trace.Trace, data []byte) {
	t.Helper()
	var want []string
	for _, s := range tr.Slices[1:] {
		want = append(want, fmt.Sprintf("%d,%d,%d,%d", s.Track, s.Time, s.Dur, s.Time))
	}
	for _, i := range tr.Instants { // instants are slices without duration in trace_processor
		want = append(want, fmt.Sprintf("%d,%d,0,%d", i.Track, i.Time, i.Time))
	}
	readback.CheckRows(t, processor, data, `SELECT extract_arg(t.source_arg_set_id, 'trace_id') AS uuid, s.ts, s.dur, to_realtime(s.ts) AS wall
FROM slice s JOIN track t ON s.track_id = t.id`, want)
}

func askArrows(t *testing.T, processor string, tr *trace.Trace, data []byte) {
	t.Helper()
	got, err := readback.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range got.Flows {
		want = append(want, fmt.Sprintf("%d,%d,%d,%d,%d,%d", f.From.Track.UUID, f.From.Start, f.From.Dur, f.To.Track.UUID, f.To.Start, f.To.Dur))
	}
	readback.CheckRows(t, processor, data, `SELECT extract_arg(tf.source_arg_set_id, 'trace_id') AS a, f.ts AS b, f.dur AS c,
extract_arg(tt.source_arg_set_id, 'trace_id') AS d, s.ts AS e, s.dur AS f
FROM flow JOIN slice f ON f.id = slice_out JOIN track tf ON f.track_id = tf.id
JOIN slice s ON s.id = slice_in JOIN track tt ON s.track_id = tt.id`, want)
}
