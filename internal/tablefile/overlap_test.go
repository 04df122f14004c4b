package tablefile

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// A spanRecord is a row with a start and an end.
type spanRecord struct {
	Start int64 `parquet:"start,delta"`
	Dur   int64 `parquet:"dur"`
}

// Every row that overlaps a window is read. If rows are in order, hardly any others are.
func TestOverlapping(t *testing.T) {
	const rows, step = 200_000, 1000
	for _, jitter := range []int64{0, 50 * step, 1 << 40} { // in order, nearly in order, and unordered
		rng := rand.New(rand.NewPCG(1, uint64(jitter)))
		path := filepath.Join(t.TempDir(), "spans.parquet")
		w, err := CreateParquet[spanRecord](path, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := make([]spanRecord, rows)
		for i := range all {
			all[i] = spanRecord{int64(i+1)*step + rng.Int64N(jitter+1), rng.Int64N(5 * step)}
			w.Write(all[i])
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := OpenParquet(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for range 50 {
			from := rng.Int64N(rows * step)
			to := from + rng.Int64N(100*step)
			first, end := f.Overlapping(f.Find("start"), f.Find("dur"), from, to)
			for i, r := range all {
				if r.Start <= to && r.Start+r.Dur >= from && (int64(i) < first || int64(i) >= end) {
					t.Fatalf("jitter %d: row %d, %v, is left out of [%d, %d]: rows %d to %d", jitter, i, r, from, to, first, end)
				}
			}
			if n := end - first; jitter == 0 && n > rows/2 {
				t.Fatalf("%d rows of %d are read for [%d, %d]", n, rows, from, to)
			}
		}
		if first, end := f.Overlapping(f.Find("start"), f.Find("dur"), 0, 0); first != 0 || end != rows {
			t.Errorf("without bounds, rows %d to %d", first, end)
		}
		if first, end := f.Overlapping(f.Find("start"), f.Find("dur"), 1<<62, 0); first != end && jitter == 0 {
			t.Errorf("behind all, rows %d to %d", first, end)
		}
	}
}
