package inputs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// tree creates files in a new folder, which becomes the working directory. An entry that ends in /
// is a folder, "a -> b" is a link to b, and "a = b" is a file with content b.
func tree(t *testing.T, entries ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, e := range entries {
		name, target, isLink := strings.Cut(e, " -> ")
		name, content, _ := strings.Cut(name, " =")
		err := os.MkdirAll(filepath.Dir(name), 0o777)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(target, name)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(name, 0o777)
		default:
			err = os.WriteFile(name, []byte(strings.TrimSpace(content)), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindInFolders(t *testing.T) {
	for _, c := range []struct {
		name    string
		tree    string // separated by commas
		args    string // separated by blanks
		exclude string
		want    string // separated by blanks; after "!", the text of an error
	}{
		{"as producers nest", "p/17586/TP-0.json.gz,p/17586/TP-1.json.gz,traces/run/model/9/a.json", "p traces", "", "p/17586/TP-0.json.gz p/17586/TP-1.json.gz traces/run/model/9/a.json"},
		{"the working directory", "a.json,b/c.json", ".", "", "a.json b/c.json"},
		{"hidden", "d/.git/objects/aa,d/.cache,d/a", "d", "", "d/a"},
		{"hidden, but given", "d/.git/objects/aa", "d/.git", "", "d/.git/objects/aa"},
		{"a file and its folder", "d/a,d/b", "d d/a", "", "d/a d/b"},
		{"a folder and one in it", "d/e/a", "d d/e", "", "d/e/a"},
		{"a link to itself", "d/a,d/loop -> .", "d", "", "d/a"},
		{"a link to above", "d/a,other,d/e/up -> ../..", "d", "", "d/a"},
		{"a link beside what it leads to", "d/1/a,d/0 -> 1,d/latest -> 1", "d", "", "d/1/a"},
		{"links to each other's folders", "d/x/a,d/y/b,d/x/y -> ../y,d/y/x -> ../x", "d", "", "d/x/a d/y/b"},
		{"a link out of the folder", "store/a,store/more/b,d/run -> ../store", "d", "", "d/run/a d/run/more/b"},
		{"a link out that leads back", "store/a,store/back -> ../d,d/run -> ../store,d/b", "d", "", "d/b d/run/a"},
		{"two links to one folder", "store/a,d/x -> ../store,d/y -> ../store", "d", "", "d/x/a"},
		{"a link to nothing", "d/a,d/gone -> nowhere", "d", "", "d/a d/gone"},
		{"a given link to a folder", "store/a,d -> store", "d", "", "d/a"},
		{"a glob finds no folders", "d/a.json,d/b.json/c", "d/*.json", "", "d/a.json"},
		{"a shell's glob does", "d/a.json,d/b.json/c", "d/a.json d/b.json", "", "d/a.json d/b.json/c"},
		{"only folders", "d/e/", "d", "", "!no files in this folder or below"},
		{"only hidden ones", "d/.a,d/.git/b", "d", "", "!no files in this folder or below; left out 1 hidden file, 1 hidden folder"},

		{"exclude by name", "d/a.py,d/e/b.py,d/e/c", "d", "*.py", "d/e/c"},
		{"exclude a folder", "d/a,d/run2/b,d/e/run2/c", "d", "run2", "d/a"},
		{"exclude a folder, as such", "d/a,d/run2/b", "d", "run2/", "d/a"},
		{"exclude by path", "d/run1/a,d/run2/a,d/run2/b", "d", "run2/a", "d/run1/a d/run2/b"},
		{"exclude by a path that begins above", "d/e/a,d/f/a", "d", "d/e/*", "d/f/a"},
		{"exclude what is given", "a.py,b", "a.py b", "*.py", "b"},
		{"exclude from a glob", "a1,a2", "a*", "?2", "a1"},
		{"exclude all", "a.py", "a.py", "*.py", "!leaves out every input"},
		{"exclude all of a folder", "d/a.py", "d", "*.py", "!left out 1 file by --exclude"},
		{"no glob", "a", "a", "[", "!syntax error in pattern"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree(t, strings.Split(c.tree, ",")...)
			found, err := Find(strings.Fields(c.args), strings.Fields(c.exclude)...)
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, error %v, want %q", Names(found), err, want)
				}
				return
			}
			if got := strings.Join(Names(found), " "); err != nil || got != c.want {
				t.Errorf("got %s, error %v", got, err)
			}
		})
	}
}

// An unreadable folder becomes an input, so that reading it gives the reason.
func TestFindUnreadableFolder(t *testing.T) {
	tree(t, "d/a", "d/locked/b")
	if err := os.Chmod("d/locked", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod("d/locked", 0o777) })
	if _, err := os.ReadDir("d/locked"); err == nil {
		t.Skip("nothing is locked to this user")
	}
	found, err := Find([]string{"d"})
	if err != nil || !slices.Equal(Names(found), []string{"d/a", "d/locked"}) {
		t.Fatal(Names(found), err)
	}
	var diags trace.Diags
	Load(found, Options{}, &diags)
	if list := diags.All(); diags.Worst() != trace.Error || !strings.Contains(list[len(list)-1].String(), "permission denied") {
		t.Error(list)
	}
}

const (
	aDump  = `{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[{"traceId":"0000000000000000000000000000000f","spanId":"0000000000000001","name":"x","startTimeUnixNano":"1787000000000000000","endTimeUnixNano":"1787000000000001000"}]}]}]}`
	aTrace = `{"schemaVersion":1,"baseTimeNanoseconds":1787000000000000000,"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}]}`
	aPage  = `<!doctype html><html lang="en"><head><meta name="generator" content="sgtrace">`
)

// The result of a search is summed up on one line; skipping files that are not captures costs nothing.
func TestAccountOfSearch(t *testing.T) {
	mixed := []string{
		"d/otel.jsonl = " + aDump, "d/t/1/a.json = " + aTrace, "d/t/2/b.json = " + aTrace, "d/run.py = import os", "d/t/more.py = pass", "d/README.md = # Hello",
		"d/__init__.py =", "d/notes.customer = x", "d/Makefile = all:", "d/.git/HEAD = x", "d/.DS_Store = x", "d/r.html = " + aPage, `d/s.json =[{"schema":"sgtrace.inspect.files/v1"}]`,
		`d/config.json = {"model": "x"}`, "d/t/up -> ../..",
	}
	const rest = "1 JSON file and 1 page that sgtrace wrote (s.json, r.html)"
	const others = "2 .py, 1 .json, 1 .md, 1 empty file (__init__.py), 2 other files, 1 looping link, 1 hidden file, 1 hidden folder"
	for _, c := range []struct {
		name  string
		tree  []string
		opt   Options
		want  string
		worst trace.Severity
	}{
		{"everything", mixed, Options{}, "d/: info: 1 OTLP dump, 2 PyTorch traces; left out " + rest + ", " + others + " [inputs-found]", trace.Info},
		{"requests", mixed, Options{Requests: true}, "d/: info: 1 OTLP dump; left out " + rest + ", 2 PyTorch traces without requests, " + others + " [inputs-found]", trace.Info},
		{"one format", mixed, Options{Only: otlpjson.Format}, "d/: info: 1 OTLP dump; left out " + rest + ", 2 PyTorch traces that this command does not read, " + others + " [inputs-found]", trace.Info},
		{"one kind", []string{"d/a.json = " + aTrace}, Options{}, "d/: info: 1 PyTorch trace [inputs-found]", trace.Info},
		{"tables", []string{"d/a.json = " + aTrace, "d/a.csv = Time (%),Total Time (ns),Name", "d/b.csv = Time (%),Total Time (ns),Name"}, Options{},
			"d/: info: 1 PyTorch trace; left out 2 tables of nsys stats [inputs-found]", trace.Notice},
		{"an archive", []string{"d/a.json = " + aTrace, "d/b.zip = PK\x03\x04"}, Options{}, "d/: info: 1 PyTorch trace; left out 1 zip archive [inputs-found]", trace.Notice},
		{"our own only", []string{"d/r.html = " + aPage}, Options{}, "d/: info: no captures; left out 1 page that sgtrace wrote (r.html) [inputs-found]", trace.Info},
		{"an empty file among its like", []string{"d/a.json = " + aTrace, "d/b.json ="}, Options{}, "d/: info: 1 PyTorch trace [inputs-found]", trace.Error},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree(t, c.tree...)
			found, err := Find([]string{"d"})
			if err != nil {
				t.Fatal(err)
			}
			var diags trace.Diags
			in, err := Load(found, c.opt, &diags)
			if err == nil {
				defer in.Close()
			}
			if list := diags.All(); list[0].String() != c.want || diags.Worst() != c.worst {
				t.Errorf("got %v\nwant %s", list, c.want)
			}
		})
	}
}

// No capture is mistaken for a file that sgtrace wrote.
func TestNoCaptureIsOurOwn(t *testing.T) {
	found, err := Find([]string{testinput.Shared(t, "data")})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range found {
		if in.Replaceable() {
			t.Errorf("%s is taken for a file that sgtrace wrote", in.Name)
		}
	}
}
