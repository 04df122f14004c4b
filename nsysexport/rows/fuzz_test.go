package rows

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
)

// FuzzRows reads exports with invalid rows: nothing panics or hangs, and the result is
// reproducible.
func FuzzRows(f *testing.F) {
	good, err := os.ReadFile(nsystest.Database(f, nsystest.EveryTable(3)))
	if err != nil {
		f.Fatal(err)
	}
	nsystest.AddRows(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := nsystest.Fuzzed(t, good, data)
		clock := time.AfterFunc(20*time.Second, func() { panic("hangs") })
		defer clock.Stop()
		a := readOutcome(path)
		if a.err != nil {
			t.Fatal(a.err)
		}
		if len(data)%4 == 0 { // only sometimes, because it takes as long as all the rest
			checkSame(t, a, path)
		}
		checkComplete(t, a.all, path)
		for _, d := range a.diags {
			if d.Msg == "" || d.Code == "" || d.Count < 1 {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// checkSame checks that reading an export again gives the same.
func checkSame(t *testing.T, a *outcome, path string) {
	t.Helper()
	b := readOutcome(path)
	if b.err != nil || !reflect.DeepEqual(a.rows, b.rows) || !reflect.DeepEqual(a.diags, b.diags) {
		t.Fatalf("the same export gives other rows, or says other things: %v\n%v\n%v", b.err, a.diags, b.diags)
	}
}
