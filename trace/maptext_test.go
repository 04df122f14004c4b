package trace

import (
	"strings"
	"testing"
)

func TestMapText(t *testing.T) {
	b := NewBuilder(NewSymbols(), NewArgs(), &Diags{})
	a, c := b.Intern("a"), b.Intern("c")
	shared := b.Args().Put(ArgList(nil).String(c, "shared"))
	lane := b.Track(Track{})
	about := b.Subject(Subject{Args: shared})
	list := ArgList(nil).Int(a, -7).Uint(a, 1<<63).Float(a, 1.5).Bool(c, true).String(a, "one").
		Array(a, ArgList(nil).String(0, "two").Int(0, 2).Array(0, ArgList(nil).String(0, "three"))).
		Dict(a, ArgList(nil).String(c, "four")).Extend(shared)
	b.Slice(Slice{Track: lane, Args: b.Args().Put(list)}, about)
	b.Instant(Instant{Track: lane, Args: shared})
	tr := b.Finish()
	MapText(tr, func(key, text string) string { return key + ":" + strings.ToUpper(text) })
	want := ArgList(nil).Int(a, -7).Uint(a, 1<<63).Float(a, 1.5).Bool(c, true).String(a, "a:ONE").
		Array(a, ArgList(nil).String(0, "a:TWO").Int(0, 2).Array(0, ArgList(nil).String(0, "a:THREE"))).
		Dict(a, ArgList(nil).String(c, "c:FOUR")).String(c, "c:SHARED")
	if got := tr.Args.Raw(tr.Slices[1].Args); string(got) != string(want) {
		t.Errorf("arguments of the slice: %q, want %q", got, want)
	}
	for what, id := range map[string]ArgsID{"instant": tr.Instants[0].Args, "subject": tr.Subjects[about].Args} {
		if got := tr.Args.Raw(id); string(got) != string(ArgList(nil).String(c, "c:SHARED")) {
			t.Errorf("arguments of the %s: %q", what, got)
		}
	}
}

// Windows of one trace are mapped one by one.
func TestMapTextOfWindows(t *testing.T) {
	b := NewBuilder(NewSymbols(), NewArgs(), &Diags{})
	key := b.Intern("a")
	lane := b.Track(Track{})
	about := b.Subject(Subject{Args: b.Args().Put(ArgList(nil).String(key, "jane"))})
	b.Slice(Slice{Track: lane, Time: 10, Dur: 5}, about)
	b.Slice(Slice{Track: lane, Time: 20, Dur: 5}, about)
	whole := b.Finish()
	want := string(ArgList(nil).String(key, "JANE"))
	for _, from := range []Time{10, 20} {
		part := Window(whole, from, from+10)
		MapText(part, func(_, text string) string { return strings.ToUpper(text) })
		if got := string(part.Args.Raw(part.Subjects[part.About[1]].Args)); got != want {
			t.Errorf("the subject of the window from %d has the arguments %q, want %q", from, got, want)
		}
	}
}

func TestRename(t *testing.T) {
	syms := NewSymbols()
	old := syms.Intern("old")
	before := syms.Names()
	syms.Rename(strings.ToUpper)
	later := syms.Intern("new")
	if syms.Name(old) != "OLD" || syms.Name(later) != "NEW" || before[old] != "old" {
		t.Errorf("names %q, before %q", syms.Names(), before)
	}
	syms.Rename(func(s string) string { return s + "!" })
	if syms.Name(old) != "OLD!" || syms.Name(syms.Intern("last")) != "LAST!" {
		t.Errorf("renamed twice: %q", syms.Names())
	}
	if again, ok := syms.Lookup("old"); !ok || again != old || syms.Intern("old") != old || syms.Intern("new") != later {
		t.Error("strings are not found as they were")
	}
}
