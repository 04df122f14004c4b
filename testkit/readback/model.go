package readback

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/perfetto/reader"
	"github.com/sgtrace/sgtrace/trace"
)

// hostile are strings that break careless writers.
var hostile = []string{
	"", "forward", `say "hi"`, `C:\path\new`, "tab\tline\nnull\x00bell\a", "emoji 😀 ünï", "bad \xff\xfe utf-8",
	"</script><!--", "\u2028\u2029", "{\"a\":[1,2]}", "a.b[0]", strings.Repeat("long ", 60), "void k<float, 4>(P*)",
}

// keys are names of arguments that stay distinct when written.
var keys = []string{"", "rid", "bs", "k\"1\\", "bad \xff", "emoji 😀", "true_start_ns", "grid", "Group size", "In split size", "warps per SM"}

// chooser turns bytes into choices: 0 after the last byte, so that short inputs make small models.
type chooser struct {
	data []byte
	*trace.Builder
}

func (c *chooser) pick(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	v := int(c.data[0])
	c.data = c.data[1:]
	return v % n
}

func (c *chooser) text() trace.Sym { return c.Intern(hostile[c.pick(len(hostile))]) }

// Model returns a finished trace made from data: nested and overlapping slices with many equal times, slices without
// duration, instants and samples on their boundaries, arrows in all directions, hostile strings. The strings in first get
// the lowest symbols, which must not make a difference.
func Model(data []byte, first ...string) *trace.Trace {
	c := &chooser{data, trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})}
	for _, s := range first {
		c.Intern(s)
	}
	base := trace.Time([]int64{0, 1_700_000_000_123_456_789, math.MaxInt64 / 2}[c.pick(3)])
	grid := trace.Time([]int64{1, 1000, 1e10}[c.pick(3)])
	at := func() trace.Time { return base + trace.Time(c.pick(20))*grid }

	var lanes, counters []trace.TrackID
	for range 1 + c.pick(6) {
		t := trace.Track{Name: c.text(), Kind: trace.KindThread, Order: int32(c.pick(3)) - 1, Desc: c.text()}
		if n := len(lanes); n > 0 {
			t.Parent = append(lanes, 0)[c.pick(n+1)]
		}
		t.Kind = []trace.TrackKind{trace.KindThread, trace.KindProcess, trace.KindRequest, trace.KindCounter}[c.pick(4)]
		if t.Kind == trace.KindCounter {
			t.Unit = c.text()
			counters = append(counters, c.Track(t))
			continue
		}
		t.PID = int64(c.pick(3))
		lanes = append(lanes, c.Track(t))
	}
	if lanes == nil {
		lanes = append(lanes, c.Track(trace.Track{Name: c.text()}))
	}
	for range c.pick(3) {
		c.Attribute(fmt.Sprintf("key %d", c.pick(9)), hostile[c.pick(len(hostile))])
	}
	subjects := []trace.SubjectID{0}
	for range c.pick(4) {
		subjects = append(subjects, c.Subject(trace.Subject{ID: c.text(), Args: c.args()}))
	}
	ids := []trace.SliceID{0}
	for len(c.data) > 0 {
		lane := lanes[c.pick(len(lanes))]
		switch what := c.pick(8); {
		case what == 0:
			c.Instant(trace.Instant{Time: at(), Track: lane, Name: c.text(), Args: c.args()})
		case what == 1 && counters != nil:
			c.Sample(trace.Sample{Time: at(), Track: counters[c.pick(len(counters))], Value: float64(c.pick(200)) - 100.5})
		case what == 2:
			c.Flow(trace.Flow{From: ids[c.pick(len(ids))], To: ids[c.pick(len(ids))], Name: c.text()})
		default:
			s := trace.Slice{Time: at(), Dur: int64(c.pick(12)) * int64(grid), Track: lane, Name: c.text(), Cat: c.text(), Args: c.args()}
			about := subjects[c.pick(len(subjects))]
			if parent := ids[c.pick(len(ids))]; what == 3 && parent != 0 {
				ids = append(ids, c.Child(parent, s, about))
			} else {
				ids = append(ids, c.Slice(s, about))
			}
		}
	}
	return c.Finish()
}

// args returns a random list of arguments.
func (c *chooser) args() trace.ArgsID {
	return c.Args().Put(c.list(c.pick(4), func(int) trace.Sym { return c.Intern(keys[c.pick(len(keys))]) }, 2))
}

// list encodes n arguments with the names that key returns.
func (c *chooser) list(n int, key func(i int) trace.Sym, depth int) (l trace.ArgList) {
	for i := range n {
		k := key(i)
		switch what := c.pick(8); {
		case what == 0:
			l = l.Int(k, []int64{0, 1, -1, math.MinInt64, math.MaxInt64}[c.pick(5)])
		case what == 1:
			l = l.Uint(k, []uint64{0, 1, 1 << 53, 1<<63 + 1, math.MaxUint64}[c.pick(5)])
		case what == 2:
			l = l.Float(k, []float64{0, -1.5, 1e-300, math.Inf(1), math.Inf(-1)}[c.pick(5)])
		case what == 3:
			l = l.Bool(k, c.pick(2) == 1)
		case what == 4 && depth > 0:
			l = l.Array(k, c.list(c.pick(4), func(int) trace.Sym { return 0 }, depth-1))
		case what == 5 && depth > 0:
			// Names within a dictionary must differ.
			l = l.Dict(k, c.list(c.pick(4), func(i int) trace.Sym { return c.Intern(keys[i]) }, depth-1))
		default:
			l = l.String(k, hostile[c.pick(len(hostile))])
		}
	}
	return l
}

// Args returns what a viewer should show for the arguments own and, if their names differ, shared: strings with U+FFFD for
// invalid bytes, "_" for an empty name, "[]" and "{}" for empty arrays and dictionaries; nil if there are none.
func Args(t *trace.Trace, own, shared trace.ArgsID) map[string]any {
	var args map[string]any
	for _, id := range []trace.ArgsID{own, shared} {
		for a := range t.Args.All(id) {
			if args == nil {
				args = map[string]any{}
			}
			if key := argName(t, a.Key); args[key] == nil {
				args[key] = argValue(t, a)
			}
		}
	}
	return args
}

func argName(t *trace.Trace, key trace.Sym) string {
	if key == 0 {
		return "_"
	}
	return reader.Pathless(Valid(t.Syms.Name(key)))
}

func argValue(t *trace.Trace, a trace.Arg) any {
	switch a.Kind {
	case trace.ArgInt:
		return a.Int()
	case trace.ArgUint:
		return a.Uint()
	case trace.ArgFloat:
		return a.Float()
	case trace.ArgBool:
		return a.Bool()
	case trace.ArgArray:
		var all []any
		for e := range a.Elems {
			all = append(all, argValue(t, e))
		}
		if all == nil {
			return "[]"
		}
		return all
	case trace.ArgDict:
		all := map[string]any{}
		for e := range a.Elems {
			all[argName(t, e.Key)] = argValue(t, e)
		}
		if len(all) == 0 {
			return "{}"
		}
		return all
	default:
		return Valid(string(a.Bytes()))
	}
}

// Valid returns s with each run of invalid bytes replaced by U+FFFD.
func Valid(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

// NumberedModel is [Model] with numbered track names: "track n".
func NumberedModel(data []byte) *trace.Trace {
	tr := Model(data)
	for id := range tr.Tracks {
		tr.Tracks[id].Name = tr.Syms.Intern(fmt.Sprint("track ", id))
		tr.Tracks[id].PID = 0
	}
	return tr
}

// RandomBytes returns n bytes for a model.
func RandomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
