package drawing

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/convert/verify"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// FuzzLayout draws dumps with invalid spans, links, names, ids, and times. Every span that was read
// is in the files, which match the model and are the same on any number of cores.
func FuzzLayout(f *testing.F) {
	dumps := testinput.EveryMode(f, 2)
	for i := range uint8(6) {
		f.Add(i, bytes.Repeat([]byte{i * 23, 101, i + 3, i * 7, 77, 15, i, 55}, int(i)*3))
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		dump := testinput.Edit(dumps[int(which)%len(dumps)], edits)
		clock := time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("hangs: %s", dump)) })
		defer clock.Stop()
		set, model := drawn(t, dump)
		checkEverySpanIsDrawn(t, set, model)
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		_, alone := drawn(t, dump)
		runtime.GOMAXPROCS(8)
		_, onMany := drawn(t, dump)
		for name, write := range map[string]func(*bytes.Buffer, *trace.Trace) error{
			"perfetto": func(b *bytes.Buffer, m *trace.Trace) error { return perfetto.Write(b, m) },
			"chrome":   func(b *bytes.Buffer, m *trace.Trace) error { return chrometrace.Write(b, m) },
		} {
			var a bytes.Buffer
			if err := write(&a, model); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, other := range []*trace.Trace{alone, onMany} {
				var b bytes.Buffer
				if err := write(&b, other); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
					t.Fatalf("%s: the number of cores makes a difference; %v", name, err)
				}
			}
			check := verify.ChromeJSON
			if name == "perfetto" {
				check = verify.Perfetto
			}
			if _, err := check(&a, model); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

// drawn reads a dump and draws it in both views.
func drawn(t *testing.T, dump []byte) (*request.Set, *trace.Trace) {
	t.Helper()
	d := spantable.New(&trace.Diags{})
	if err := otlpjson.Read(d, "fuzz", bytes.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	set := assembly.Build(d).Set
	return set, Layout(set, Options{})
}
