package otlpjson

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A node is a span with small numbers as ids, for tests of trees.
type node struct {
	trace, id, parent uint64
	start, end        int64
	name              string
}

func (n node) json() string {
	return fmt.Sprintf(`{"traceId":"%032x","spanId":"%016x","parentSpanId":"%016x","name":%q,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}`,
		n.trace, n.id, n.parent, n.name, n.start, n.end)
}

// grow reads the nodes and builds their tree.
func grow(t testing.TB, nodes ...node) (*spantable.Tree, reading) {
	t.Helper()
	var lines []string
	for _, n := range nodes {
		lines = append(lines, doc(n.json()))
	}
	r := read(t, strings.Join(lines, "\n"))
	if r.Len() != len(nodes) {
		t.Fatalf("%d spans of %d: %v", r.Len(), len(nodes), r.diags)
	}
	tree := spantable.NewTree(r.Table)
	tree.Sort(r.byTime)
	r.diags = r.Diags.All()
	return tree, r
}

// byTime orders spans by start, then longest first, then by identity.
func (r reading) byTime(a, b uint32) int {
	x, y := r.Span(int(a)), r.Span(int(b))
	return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End), cmp.Compare(x.TraceLo, y.TraceLo), cmp.Compare(x.ID, y.ID))
}

// outline prints a tree: each root with its children in parentheses. "?" marks orphans, and "="
// duplicates.
func outline(tree *spantable.Tree, d *spantable.Table) string {
	var out []string
	var walk func(i int) string
	walk = func(i int) string {
		s := d.Syms.Name(d.Span(i).Name)
		if tree.Orphan(i) {
			s = "?" + s
		}
		if tree.Duplicate(i) {
			s = "=" + s
		}
		var children []string
		for _, c := range tree.Children(i) {
			if tree.Parent(int(c)) != i {
				return "(a child whose parent is another)"
			}
			children = append(children, walk(int(c)))
		}
		if len(children) > 0 {
			s += "(" + strings.Join(children, " ") + ")"
		}
		return s
	}
	for i := range d.Len() {
		if tree.Parent(i) == spantable.None {
			out = append(out, walk(i))
		}
	}
	return strings.Join(out, " ")
}

func TestTree(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []node
		want  string
		codes string
	}{
		{"empty", nil, "", ""},
		{"children before parents", []node{{1, 3, 2, 12, 13, "c"}, {1, 2, 1, 11, 18, "b"}, {1, 1, 0, 10, 20, "a"}}, "a(b(c))", ""},
		{"children by start, then longest, then id", []node{
			{1, 5, 1, 30, 31, "e"}, {1, 4, 1, 20, 21, "d"}, {1, 3, 1, 20, 29, "c"}, {1, 2, 1, 11, 12, "b2"}, {1, 6, 1, 11, 12, "b6"}, {1, 1, 0, 10, 40, "a"},
		}, "a(b2 b6 c d e)", ""},
		{"equal span ids in two traces", []node{{1, 1, 0, 10, 20, "a"}, {2, 1, 0, 10, 20, "b"}, {1, 2, 1, 11, 12, "a1"}, {2, 2, 1, 11, 12, "b1"}}, "a(a1) b(b1)", ""},
		{"orphans", []node{{1, 2, 9, 10, 20, "a"}, {1, 3, 2, 11, 12, "b"}, {2, 1, 2, 10, 20, "c"}}, "?a(b) ?c", ""},
		{"exported twice", []node{{1, 1, 0, 10, 20, "a"}, {1, 2, 1, 11, 12, "b"}, {1, 2, 1, 11, 12, "b"}, {1, 1, 0, 10, 20, "a"}, {1, 2, 1, 11, 12, "b"}},
			"a(b) =b =a =b", "otlp-duplicate-span@f1:3×3"},
		{"an id with two contents", []node{{1, 1, 0, 10, 20, "a"}, {1, 1, 0, 10, 21, "b"}, {1, 2, 1, 11, 12, "c"}}, "a(c) b", "otlp-id-collision@f1:2"},
		{"self-parent", []node{{1, 1, 1, 10, 20, "a"}, {1, 2, 1, 11, 12, "b"}}, "a(b)", "otlp-cycle@f1:1"},
		{"a cycle of two", []node{{1, 1, 2, 10, 20, "a"}, {1, 2, 1, 10, 20, "b"}}, "a(b)", "otlp-cycle@f1:1"},
		{"a cycle with a tail", []node{{1, 4, 3, 10, 20, "d"}, {1, 1, 3, 10, 20, "a"}, {1, 2, 1, 10, 20, "b"}, {1, 3, 2, 10, 20, "c"}}, "c(a(b) d)", "otlp-cycle@f1:4"},
		{"two cycles", []node{{1, 1, 2, 10, 20, "a"}, {1, 2, 1, 10, 20, "b"}, {2, 1, 2, 10, 20, "c"}, {2, 2, 1, 10, 20, "d"}}, "a(b) c(d)", "otlp-cycle@f1:1×2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, r := grow(t, c.nodes...)
			if got := outline(tree, r.Table); got != c.want || r.codes() != c.codes {
				t.Errorf("%s, diagnostics %v; want %s, %q", got, r.diags, c.want, c.codes)
			}
		})
	}
}

func TestTreeFind(t *testing.T) {
	var nodes []node
	for i := range uint64(500) {
		nodes = append(nodes, node{1 + i%7, 1 + i/7, 0, int64(10 + i), int64(20 + i), fmt.Sprint(i)})
	}
	tree, r := grow(t, nodes...)
	for _, n := range nodes {
		got := tree.Find(0, n.trace, n.id)
		if got == spantable.None {
			t.Errorf("span %d of trace %d is not found", n.id, n.trace)
		} else if name := r.Syms.Name(r.Span(got).Name); name != n.name {
			t.Errorf("span %d of trace %d is %s, want %s", n.id, n.trace, name, n.name)
		}
	}
	for _, id := range [][3]uint64{{0, 1, 0}, {0, 1, 999}, {0, 99, 1}, {1, 1, 1}} {
		if got := tree.Find(id[0], id[1], id[2]); got != spantable.None {
			t.Errorf("%v is found at %d", id, got)
		}
	}
	empty, _ := grow(t)
	if empty.Find(0, 1, 1) != spantable.None {
		t.Error("an empty tree finds a span")
	}
}

// Any parent graph, including cycles, becomes a forest that contains every span once.
func TestTreeIsForest(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var nodes []node
		for i := range uint64(30) {
			nodes = append(nodes, node{1, 1 + i, rng.Uint64N(33), int64(10 + rng.IntN(5)), int64(20 + rng.IntN(5)), fmt.Sprint("n", i)})
		}
		tree, r := grow(t, nodes...)
		names := strings.FieldsFunc(outline(tree, r.Table), func(c rune) bool { return strings.ContainsRune("() ?=", c) })
		slices.Sort(names)
		if len(names) != len(nodes) || len(slices.Compact(names)) != len(nodes) {
			t.Errorf("seed %d: %s", seed, outline(tree, r.Table))
		}
		for i := range nodes {
			if !slices.IsSortedFunc(tree.Children(i), r.byTime) {
				t.Errorf("seed %d: the children of %d are not in order", seed, i)
			}
		}
		for _, d := range r.diags {
			if d.Code != "otlp-cycle" || d.Severity != trace.DataLoss {
				t.Errorf("seed %d: %v", seed, d)
			}
		}
	}
}
