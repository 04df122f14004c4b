package main

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A source is the code of the module, parsed when it is asked for.
type source struct {
	dir      string
	packages map[string]*pkg
}

// A pkg is a package without its tests.
type pkg struct {
	src   *source
	fset  *token.FileSet
	files []*ast.File
	lines map[*ast.File][]string
	names map[string]string // the text of constants by their names
	types map[string]string // the types of constants by their names
}

func newSource(dir string) *source { return &source{dir: dir, packages: map[string]*pkg{}} }

// below parses the packages in a folder of the module and the folders in it, so that
// what is read may lie in any of them.
func (s *source) below(folder string) (all []*pkg, err error) {
	err = filepath.WalkDir(filepath.Join(s.dir, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); path != s.dir && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		within, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		p, err := s.load(filepath.ToSlash(within))
		if err == nil && len(p.files) > 0 {
			all = append(all, p)
		}
		return err
	})
	return all, err
}

// load parses the package in a folder of the module; it has no files if there is none.
func (s *source) load(folder string) (*pkg, error) {
	if p := s.packages[folder]; p != nil {
		return p, nil
	}
	names, err := filepath.Glob(filepath.Join(s.dir, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &pkg{src: s, fset: token.NewFileSet(), lines: map[*ast.File][]string{}, names: map[string]string{}, types: map[string]string{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(p.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
		p.lines[f] = strings.Split(string(text), "\n")
		p.readConstants(f)
	}
	s.packages[folder] = p
	return p, nil
}

// readConstants remembers the texts and types of constants.
func (p *pkg) readConstants(f *ast.File) {
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		kind := ""
		for _, spec := range decl.Specs {
			v := spec.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); ok {
				kind = id.Name
			} else if v.Values != nil {
				kind = "" // iota goes on only without values
			}
			for i, name := range v.Names {
				p.types[name.Name] = kind
				if i < len(v.Values) {
					if text, ok := p.text(v.Values[i]); ok {
						p.names[name.Name] = text
					}
				}
			}
		}
	}
}

// text returns the string that an expression of literals and constants stands for.
func (p *pkg) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return e.Value, e.Kind == token.INT
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.Ident:
		s, ok := p.names[e.Name]
		return s, ok
	case *ast.ParenExpr:
		return p.text(e.X)
	case *ast.BinaryExpr:
		x, ok1 := p.text(e.X)
		y, ok2 := p.text(e.Y)
		return x + y, ok1 && ok2 && e.Op == token.ADD
	}
	return "", false
}

// variable returns the literal that a variable of the package is set to, and its file.
// Names are the same whether they are exported or not.
func (p *pkg) variable(name string) (*ast.CompositeLit, *ast.File) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.VAR {
				continue
			}
			for _, spec := range decl.Specs {
				v := spec.(*ast.ValueSpec)
				if sameName(v.Names[0].Name, name) && len(v.Values) == 1 {
					lit, _ := v.Values[0].(*ast.CompositeLit)
					return lit, f
				}
			}
		}
	}
	return nil, nil
}

// sameName reports whether two names differ at most in that one is exported.
func sameName(a, b string) bool {
	return len(a) == len(b) && len(a) > 0 && a[1:] == b[1:] && strings.EqualFold(a[:1], b[:1])
}

// imported returns the package of the module that a file knows by a name, nil if that
// is none.
func (p *pkg) imported(name string) *pkg {
	for _, f := range p.files {
		for _, spec := range f.Imports {
			folder, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), modulePath+"/")
			if ok && (spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(folder) == name) {
				if other, err := p.src.load(folder); err == nil {
					return other
				}
			}
		}
	}
	return nil
}

// modulePath is where the imports of the module's own packages begin.
const modulePath = "github.com/sgtrace/sgtrace"

// fields returns the names of the fields of a struct type.
func (p *pkg) fields(t ast.Expr) []string {
	if sel, ok := t.(*ast.SelectorExpr); ok {
		if other := p.imported(sel.X.(*ast.Ident).Name); other != nil {
			return other.fields(sel.Sel)
		}
	}
	if id, ok := t.(*ast.Ident); ok {
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == id.Name {
					t = spec.Type
				}
				return true
			})
		}
	}
	var names []string
	if st, ok := t.(*ast.StructType); ok {
		for _, f := range st.Fields.List {
			for _, name := range f.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// oddHeading is the heading in package comments of the list of producers' quirks.
const oddHeading = "What is odd"

// odd returns what is said about producers under its heading: in the comment of a package, or
// of one in its folder, or in that of a variable, if one is named.
func (s *source) odd(folder string, variable ...string) (string, error) {
	packages, err := s.below(folder)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, p := range packages {
		texts = append(texts, p.commentsOn(variable)...)
	}
	for _, text := range texts {
		doc := new(comment.Parser).Parse(text)
		var below []comment.Block
		inside := false
		for _, block := range doc.Content {
			if h, ok := block.(*comment.Heading); ok {
				title, _ := h.Text[0].(comment.Plain)
				inside = string(title) == oddHeading
				continue
			}
			if inside {
				below = append(below, block)
			}
		}
		if below != nil {
			printer := comment.Printer{DocLinkURL: func(*comment.DocLink) string { return "" }}
			return strings.TrimSpace(markdown(printer.Markdown(&comment.Doc{Content: below}))), nil
		}
	}
	return "", fmt.Errorf("the comment of %s has no heading %q", strings.Join(append([]string{folder}, variable...), "."), oddHeading)
}

// commentsOn returns the comments of a package, or those of variables of it.
func (p *pkg) commentsOn(variables []string) (all []string) {
	for _, f := range p.files {
		if len(variables) == 0 {
			all = append(all, f.Doc.Text())
		}
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.VAR {
				continue
			}
			for _, spec := range decl.Specs {
				if slices.Contains(variables, spec.(*ast.ValueSpec).Names[0].Name) {
					all = append(all, decl.Doc.Text())
				}
			}
		}
	}
	return all
}

// wireWord matches names of the wire in plain text: with an underscore, with a capital
// letter in their midst, or flags.
var wireWord = regexp.MustCompile(`--[a-z]+[-a-z]*(?:=[a-z]+)?|[\w.]*\w_\w[\w.]*\w|\b[a-z]{2,}[A-Z]\w*`)

// markdown makes code of the names of the wire in a list of a comment, and takes back
// what was escaped in them.
func markdown(text []byte) string {
	s := strings.NewReplacer(`\_`, "_", `\[`, "[").Replace(string(text))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = wireWord.ReplaceAllString(strings.Replace(line, "  - ", "- ", 1), "`$0`")
	}
	return strings.Join(lines, "\n")
}
