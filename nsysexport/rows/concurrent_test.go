package rows

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/trace"
)

// Several goroutines may scan one Source, even the same table.
func TestConcurrentScans(t *testing.T) {
	s, err := Open(nsystest.NVTXDatabase(t), Options{Args: trace.NewArgs()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			n := 0
			for range s.Within(0, 0).Ranges {
				n++
			}
			for range s.Within(0, 0).Kernels {
				n++
			}
			if n != 11 {
				t.Errorf("%d rows, want 11", n)
			}
		})
	}
	wg.Wait()
}

// Pages with a cycle of child pointers neither hang nor crash.
func TestPagesInCircles(t *testing.T) {
	good := nsystest.Database(t, large(3000))
	path := damaged(t, good, func(b []byte) []byte {
		for at := 4096; at < len(b); at += 4096 {
			const interior, cells, pointers = 5, 3, 12
			if page := b[at:]; page[0] == interior {
				first := binary.BigEndian.Uint16(page[pointers:])
				for i := range binary.BigEndian.Uint16(page[cells:]) {
					cell := binary.BigEndian.Uint16(page[pointers+2*i:])
					copy(page[cell:cell+4], page[first:first+4])
				}
				binary.BigEndian.PutUint32(page[8:], uint32(at/4096+1)) // the last child is the page itself
			}
		}
		return b
	})
	e, _, diags := read(t, path)
	if len(e.Kernels) == 0 || len(diags) < 2 || !strings.HasPrefix(diags[1].Code, "nsys-") {
		t.Errorf("%d kernels, diagnostics %v", len(e.Kernels), diags)
	}
}

// Binary payloads may have any type.
func TestPayloadTypes(t *testing.T) {
	for _, c := range []struct {
		bits          uint64
		unused        int
		signed, float bool
		want          string
	}{
		{0x3fc00000, 32, true, true, "1.5"},
		{0x3ff8000000000000, 0, true, true, "1.5"},
		{0xff, 56, true, false, "-1"},
		{0xff, 56, false, false, "255"},
	} {
		var p payloads
		p.field(1, c.bits, c.unused, c.signed, c.float)
		for a := range p.list.All {
			got := map[trace.ArgKind]any{trace.ArgFloat: a.Float(), trace.ArgInt: a.Int(), trace.ArgUint: a.Uint()}[a.Kind]
			if text := fmt.Sprint(got); text != c.want {
				t.Errorf("%#x: %s, want %s", c.bits, text, c.want)
			}
		}
	}
}

// CUPTI's enumeration values have names; unknown values do not crash.
func TestLabels(t *testing.T) {
	for got, want := range map[string]string{
		Direction(1).String():  "HtoD",
		Direction(13).String(): "Unified DtoD",
		Direction(99).String(): "Unknown",
		ClassDriver.String():   "CUDA driver",
		Class(99).String():     "unknown",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for name, want := range map[string]string{
		"cudaLaunchKernel_v7000": "cudaLaunchKernel", "cudaGraphLaunch_v10000": "cudaGraphLaunch_v10000",
		"cuMemAlloc_v2": "cuMemAlloc_v2", "_v7000": "_v7000", "x_vabcd": "x_vabcd",
	} {
		if got := APIName(name); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
