package nsysexport

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// FuzzProfiles reads exports with invalid rows: nothing panics or hangs, every reference has a
// target, and each walk visits the same.
func FuzzProfiles(f *testing.F) {
	good, err := os.ReadFile(nsystest.Database(f, nsystest.EveryTable(3)))
	if err != nil {
		f.Fatal(err)
	}
	nsystest.AddRows(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := nsystest.Fuzzed(t, good, data)
		clock := time.AfterFunc(20*time.Second, func() { panic("hangs") })
		defer clock.Stop()
		profiles, err := readProfiles(path, rows.Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &trace.Diags{}}, &profile.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range profiles {
			for _, e := range p.Events {
				if int(e.Place.Row()) >= len(p.Rows) || e.Dur < 0 {
					t.Fatalf("%+v of %d rows", e, len(p.Rows))
				}
			}
		}
		if x, y := walked(t, path), walked(t, path); x != y {
			t.Fatalf("walked: %s, then %s", x, y)
		}
	})
}

// walked counts what a walk over an export visits.
func walked(t *testing.T, path string) string {
	t.Helper()
	src, err := rows.Open(path, rows.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	st := NewStream(src, func(pid int32) int32 { return pid % 7 })
	var kernels, calls, copies, ranges int
	var busy int64
	st.Kernels(func(k *profile.Kernel) bool { kernels++; busy += k.Dur(); return true })
	st.Calls(func(c *profile.Call) bool { calls++; busy += c.Dur(); return true })
	st.Copies(func(c *profile.Copy) bool { copies++; busy += c.Dur(); return true })
	st.Ranges(func(r *profile.Range) bool { ranges++; return true })
	return fmt.Sprint(kernels, calls, copies, ranges, busy)
}
