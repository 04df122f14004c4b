package storage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// A timedRow is a row with the columns that windows compare.
type timedRow struct {
	text string
	ints []int64 // start, end, and other columns
	read int64   // number of rows read so far
}

// passes reports whether a row is inside a window.
func (r *timedRow) passes(w *Window) bool {
	number := int64(0)
	if w.Number != NoColumn {
		number = r.ints[w.Number%len(r.ints)]
	}
	return r.ints[1] >= w.From && r.ints[0] <= w.To || w.Number != NoColumn && number >= w.Least && number <= w.Most
}

// rowsWithin reads the rows of a table that w selects, or all rows with SQLite if w is nil. The
// columns must be those of events. left reports whether rows were skipped.
func (r *reader) rowsWithin(table string, w *Window) (list []timedRow, left bool) {
	r.withScan(table, func(s *scan, columns []Column) { // an unreadable table has no rows
		if len(columns) < 3 || columns[0].Name != "start" || columns[1].Name != "end" {
			return
		}
		if w == nil {
			s.tree = nil
		} else {
			s.Within(w)
		}
		none := make([]int64, len(columns))
		for s.Next() {
			ints := make([]int64, len(columns))
			s.Ints(none, ints)
			list = append(list, timedRow{text: fmt.Sprint(ints), ints: ints, read: s.Read()})
		}
		left = s.Read() > int64(len(list))
	})
	return list, left
}

// checkWindows compares windows on the tables of a file with SQLite's rows. It returns the number
// of scans that skipped rows. Damaged rows in skipped pages count as read.
func checkWindows(t *testing.T, path string, r *rand.Rand, intact bool) (pruned int) {
	t.Helper()
	d, err := openDatabase(path)
	if err != nil {
		return 0 // damage may make the file unreadable
	}
	defer d.Close()
	reader := newReader(t, d, intact)
	defer reader.close()
	for _, table := range d.Tables() {
		all, _ := reader.rowsWithin(table, nil)
		for i := range 6 { // the first scans learn the ranges of leaves, later ones use them
			if len(all) == 0 {
				break
			}
			from, to := all[r.IntN(len(all))], all[r.IntN(len(all))]
			w := &Window{Start: 0, End: 1, From: from.ints[1], To: max(from.ints[1], min(to.ints[0], from.ints[1]+200_000)), Number: NoColumn}
			if i%2 == 1 {
				w.Number, w.Least = 2, int64(r.IntN(300))
				w.Most = w.Least + int64(r.IntN(30))
			}
			if reader.checkWindow(table, all, w) {
				pruned++
			}
			if t.Failed() {
				t.Fatalf("%s of %s, %+v, scan %d", table, path, *w, i)
			}
		}
	}
	return pruned
}

// checkWindow checks that a window skips no row that it selects, and returns only rows of the
// table, in order.
func (r *reader) checkWindow(table string, all []timedRow, w *Window) (left bool) {
	got, left := r.rowsWithin(table, w)
	next := 0
	for _, row := range all {
		switch {
		case next < len(got) && got[next].text == row.text:
			if r.c != nil && got[next].read != row.read {
				r.t.Errorf("%d rows were read up to %+v", got[next].read, row)
				return left
			}
			next++
		case row.passes(w):
			r.t.Errorf("left out %+v", row)
			return left
		}
	}
	if next < len(got) {
		r.t.Errorf("%d rows too many: %+v", len(got)-next, got[next])
	}
	return left
}

// intsOfAllSizes is an event table with every special case: integers of each size, rows longer than
// a page, deleted rows, and long events.
const intsOfAllSizes = `
	CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, number INTEGER, more INTEGER, text TEXT);
	WITH RECURSIVE i(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM i WHERE x<4000)
	INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT
		CASE x%7 WHEN 0 THEN x WHEN 1 THEN x*1000 WHEN 2 THEN -x WHEN 3 THEN x*1000000007 WHEN 4 THEN 0 WHEN 5 THEN 1 ELSE NULL END,
		CASE x%11 WHEN 0 THEN x WHEN 1 THEN x*100000 WHEN 2 THEN 1 WHEN 3 THEN x*1000000009*1000 ELSE x*1001 END,
		CASE x%5 WHEN 0 THEN NULL WHEN 1 THEN x WHEN 2 THEN -1 WHEN 3 THEN 1 ELSE x*70000 END, x,
		CASE WHEN x%97=0 THEN hex(zeroblob(9000)) END FROM i;
	DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE rowid BETWEEN 1000 AND 1400 OR rowid%13=0;`

func TestWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := nsystest.Database(t, nsystest.EveryTable(400))
	if pruned := checkWindows(t, path, r, true); pruned < 10 {
		t.Errorf("%d scans left something out", pruned)
	}
	if pruned := checkWindows(t, nsystest.Database(t, intsOfAllSizes), r, true); pruned == 0 {
		t.Error("no scan left anything out")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	subject := testinput.Subject{Data: data, Cuts: testinput.Pages(data, 4096)}
	mutant := filepath.Join(t.TempDir(), "mutant.sqlite")
	for seed := range testinput.Kinds() {
		m := subject.Mutate(uint64(seed))
		if err := os.WriteFile(mutant, m.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		if checkWindows(t, mutant, r, false); t.Failed() {
			t.Fatalf("seed %d: %s", seed, m.Name)
		}
	}
}

// TestWithinRealExports reads windows of nsys's own files.
func TestWithinRealExports(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testinput.Shared(t, "data", "nsys", "real"), "*.sqlite"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no exports", err)
	}
	pruned := 0
	for _, path := range paths {
		pruned += checkWindows(t, path, rand.New(rand.NewPCG(3, 4)), true)
	}
	if pruned < len(paths) {
		t.Errorf("%d scans of %d exports left something out", pruned, len(paths))
	}
}
