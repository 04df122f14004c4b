package testset

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// SharedFile returns the path of a dump of the shared data, and skips the test where
// that is not at hand.
func SharedFile(t testing.TB, name string) string {
	t.Helper()
	return testinput.Shared(t, "data", "otel", name)
}

var loaded sync.Map // *request.Set by file name: several tests read the same

// LoadDump reads one OTLP dump of the development data.
func LoadDump(t testing.TB, name string) *request.Set {
	t.Helper()
	path := SharedFile(t, name)
	if s, ok := loaded.Load(name); ok {
		return s.(*request.Set)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".zst") {
		z, err := zstd.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	s := BuildSet(t, name, r)
	loaded.Store(name, s)
	return s
}

// BuildSet makes a set of one OTLP dump, on one clock, as reports see it.
func BuildSet(t testing.TB, name string, r io.Reader) *request.Set {
	t.Helper()
	a := assemble(t, name, r)
	a.OnOneClock(a.Set.HostClocks())
	return a.Set
}

func assemble(t testing.TB, name string, r io.Reader) *assembly.Assembly {
	t.Helper()
	d := spantable.New(new(trace.Diags))
	if err := otlpjson.Read(d, name, r); err != nil {
		t.Fatal(err)
	}
	return assembly.Build(d)
}
