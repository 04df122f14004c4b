package verify

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

var formats = []struct {
	name   string
	write  func(io.Writer, *trace.Trace) error
	verify func(io.Reader, *trace.Trace) (Counts, error)
	// meaning is how another reader interprets a file.
	meaning func(*testing.T, []byte) any
}{
	{"perfetto", perfetto.Write, Perfetto, decoded},
	{"chrome", chrometrace.Write, ChromeJSON, unmarshalled},
}

func randomModel(r *rand.Rand, size int) *trace.Trace {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return readback.Model(data)
}

// Outputs equal the model, however difficult its values are.
func TestOutputsAreEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 150 {
		tr := randomModel(r, r.IntN(3000))
		for _, f := range formats {
			var file bytes.Buffer
			if err := f.write(&file, tr); err != nil {
				t.Fatal(err)
			}
			counts, err := f.verify(&file, tr)
			if err != nil {
				t.Fatalf("model %d, %s: %v", i, f.name, err)
			}
			want := Counts{Slices: len(tr.Slices) - 1, Instants: len(tr.Instants), Samples: len(tr.Samples), Flows: len(tr.Flows)}
			counts.Tracks, counts.Args = 0, 0
			if counts != want {
				t.Errorf("model %d, %s: counts %+v, want %+v", i, f.name, counts, want)
			}
		}
	}
}

// A bit flip anywhere changes the meaning of the file or makes it invalid. If verification does not
// notice one, the file must be another spelling of the same: 1E-300 for 1e-300, or the id of an
// equal string.
func TestFlippedBitsAreNoticed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, f := range formats {
		missed := 0
		for range 2 {
			tr := randomModel(r, 250)
			whole := written(t, f.write, tr)
			for i := range whole {
				damaged := bytes.Clone(whole)
				damaged[i] ^= 1 << r.IntN(8)
				if _, err := f.verify(bytes.NewReader(damaged), tr); err != nil {
					continue
				}
				if missed++; !same(f.meaning(t, damaged), f.meaning(t, whole)) {
					t.Errorf("%s: damage to byte %d is not noticed: %q", f.name, i, damaged[max(0, i-60):min(len(damaged), i+60)])
				}
			}
		}
		if missed > 20 {
			t.Errorf("%s: %d flips made no difference", f.name, missed)
		}
	}
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// decoded is an independent decoder's interpretation of a Perfetto file.
func decoded(t *testing.T, file []byte) any {
	all, err := readback.Decode(file)
	if err != nil {
		t.Error(err)
	}
	return all
}

// unmarshalled is encoding/json's interpretation of a file.
func unmarshalled(t *testing.T, file []byte) (all any) {
	if err := json.Unmarshal(file, &all); err != nil {
		t.Error(err)
	}
	return all
}

func written(t *testing.T, write func(io.Writer, *trace.Trace) error, tr *trace.Trace) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := write(&file, tr); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// units splits a file into parts that can be lost or repeated as a whole: packets or lines.
func units(t *testing.T, format string, file []byte) (all [][]byte) {
	t.Helper()
	if format == "chrome" {
		return bytes.SplitAfter(file, []byte("\n"))
	}
	for len(file) > 0 {
		_, _, n := protowire.ConsumeField(file)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		all, file = append(all, file[:n]), file[n:]
	}
	return all
}

// A lost or repeated packet or line is noticed, and so is a truncated file.
func TestLostAndRepeatedEventsAreNoticed(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, f := range formats {
		for range 3 {
			tr := randomModel(r, 400)
			all := units(t, f.name, written(t, f.write, tr))
			fails := func(what string, i int, parts ...[]byte) {
				t.Helper()
				if _, err := f.verify(bytes.NewReader(bytes.Join(parts, nil)), tr); err == nil {
					t.Errorf("%s: unit %d %s and not noticed: %q", f.name, i, what, all[i])
				}
			}
			for i, unit := range all {
				if len(unit) == 0 { // after the last line
					continue
				}
				before, after := bytes.Join(all[:i], nil), bytes.Join(all[i+1:], nil)
				fails("lost", i, before, after)
				fails("repeated", i, before, unit, unit, after)
				fails("cut", i, before, unit[:len(unit)-1])
				fails("last", i, before)
			}
		}
	}
}

// Arguments in typed message fields are compared like others.
func TestTypedArgumentsAreCompared(t *testing.T) {
	model := func(shape, dtype string, grid int64) *trace.Trace {
		b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
		args := trace.ArgList(nil).Array(b.Intern("Concrete Inputs"), trace.ArgList(nil).String(0, "").String(0, shape)).
			String(b.Intern("dtype"), dtype).Array(b.Intern("grid"), trace.ArgList(nil).Int(0, 1).Int(0, grid)).Int(b.Intern("other"), 1)
		b.Slice(trace.Slice{Dur: 1, Track: b.Track(trace.Track{}), Args: b.Args().Put(args)}, 0)
		return b.Finish()
	}
	tr := model("1", "Float", 300)
	file := written(t, perfetto.Write, tr)
	if _, err := Perfetto(bytes.NewReader(file), tr); err != nil {
		t.Error(err)
	}
	for _, other := range []*trace.Trace{model("2", "Float", 300), model("1", "Half", 300), model("1", "no word", 300), model("1", "Float", 301)} {
		if _, err := Perfetto(bytes.NewReader(file), other); err == nil || !strings.Contains(err.Error(), "other arguments") {
			t.Errorf("a difference is not noticed: %v", err)
		}
	}
}
