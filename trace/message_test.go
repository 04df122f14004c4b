package trace

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every message has a unique code, a text, and advice, and is used somewhere, with one value per
// slot in its text.
func TestMessages(t *testing.T) {
	rows := rowsByName(t)
	codes := map[string]bool{}
	for name, m := range rows {
		switch {
		case !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(m.Code):
			t.Errorf("%s: %q is no code", name, m.Code)
		case codes[m.Code]:
			t.Errorf("two messages have the code %s", m.Code)
		case !strings.EqualFold(name, strings.ReplaceAll(m.Code, "-", "")):
			t.Errorf("the message %s has the code %s", name, m.Code)
		case m.Text == "" || m.Advice == "":
			t.Errorf("%s does not say something and what to do about it", m.Code)
		}
		codes[m.Code] = true
	}
	if len(rows) != len(Messages()) {
		t.Errorf("%d rows in the source, %d in the table", len(rows), len(Messages()))
	}
	used := map[string]bool{}
	goFiles(t, func(f *ast.File) {
		inTrace := f.Name.Name == "trace"
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr: // trace.NoRequest
				if x, ok := n.X.(*ast.Ident); ok && (x.Name == "trace" || inTrace && rows[x.Name] != nil) {
					used[n.Sel.Name], used[x.Name] = true, true
				}
			case *ast.CallExpr:
				if name, values, ok := said(n); ok && rows[name] != nil && values != len(slot.FindAllString(rows[name].Text, -1)) {
					t.Errorf("%s is said with %d values: %s", name, values, rows[name].Text)
				}
			}
			return true
		})
	})
	for name := range rows {
		if !used[name] {
			t.Errorf("nothing says %s", name)
		}
	}
}

// said parses calls of trace.Message.At(pos, values...) and Of(file, values...), and the formats'
// own functions that take the message first.
func said(call *ast.CallExpr) (name string, values int, ok bool) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || call.Ellipsis.IsValid() {
		return "", 0, false
	}
	message, place := method.X, 1
	switch method.Sel.Name {
	case "At", "Of":
	case "Tell": // the message and the position
		if len(call.Args) < 2 {
			return "", 0, false
		}
		message, place = call.Args[0], 2
	case "Report", "Diag": // the message, the position, and a count or row
		if len(call.Args) < 3 {
			return "", 0, false
		}
		message, place = call.Args[0], 3
	default:
		return "", 0, false
	}
	switch m := message.(type) {
	case *ast.SelectorExpr:
		name = m.Sel.Name
	case *ast.Ident:
		name = m.Name
	}
	return name, len(call.Args) - place, true
}

// rowsByName returns the messages by variable name.
func rowsByName(t *testing.T) map[string]*Message {
	f, err := parser.ParseFile(token.NewFileSet(), "messages.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]*Message{}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if call, ok := v.Values[0].(*ast.CallExpr); ok {
				code := strings.Trim(call.Args[0].(*ast.BasicLit).Value, `"`)
				for _, m := range Messages() {
					if m.Code == code {
						rows[v.Names[0].Name] = m
					}
				}
			}
		}
		return true
	})
	return rows
}

// goFiles parses the files of the module without tests.
func goFiles(t *testing.T, each func(*ast.File)) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			each(f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMessageSays(t *testing.T) {
	m := &Message{Text: "span {id%04x} {name%q} lasts {time}; 100 % of it {it's}"}
	if have := m.Says(10, "a b", "1 s", "lost"); have != `span 000a "a b" lasts 1 s; 100 % of it lost` {
		t.Error(have)
	}
	if have := m.Shown(); have != "span {id} {name} lasts {time}; 100 % of it {it's}" {
		t.Error(have)
	}
}

// cutSlot finds the same slots in each message as the pattern.
func TestCutSlot(t *testing.T) {
	for _, m := range Messages() {
		rest := m.Text
		for _, want := range slot.FindAllString(m.Text, -1) {
			before, verb, after, ok := cutSlot(rest)
			if got := strings.TrimSuffix(strings.TrimPrefix(rest, before), after); !ok || got != want || verb != "%v" && !strings.HasSuffix(got, verb+"}") {
				t.Errorf("%s: %q with %s, want %q", m.Code, got, verb, want)
			}
			rest = after
		}
		if _, _, _, ok := cutSlot(rest); ok {
			t.Errorf("%s: the pattern finds no slot in %q", m.Code, rest)
		}
	}
}
