package main

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
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
	fset  *token.FileSet
	files []*ast.File
	lines map[*ast.File][]string
	names map[string]string // the text of constants by their names
	types map[string]string // the types of constants by their names
}

func newSource(dir string) *source { return &source{dir: dir, packages: map[string]*pkg{}} }

// load parses the package in a folder of the module.
func (s *source) load(folder string) (*pkg, error) {
	if p := s.packages[folder]; p != nil {
		return p, nil
	}
	names, err := filepath.Glob(filepath.Join(s.dir, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &pkg{fset: token.NewFileSet(), lines: map[*ast.File][]string{}, names: map[string]string{}, types: map[string]string{}}
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
	if len(p.files) == 0 {
		return nil, fmt.Errorf("no package in %s", folder)
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
func (p *pkg) variable(name string) (*ast.CompositeLit, *ast.File) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.VAR {
				continue
			}
			for _, spec := range decl.Specs {
				v := spec.(*ast.ValueSpec)
				if v.Names[0].Name == name && len(v.Values) == 1 {
					lit, _ := v.Values[0].(*ast.CompositeLit)
					return lit, f
				}
			}
		}
	}
	return nil, nil
}

// fields returns the names of the fields of a struct type.
func (p *pkg) fields(t ast.Expr) []string {
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

// oddHeading is what package comments have above the list of what producers do.
const oddHeading = "What is odd"

// odd returns what the comment of a package says under its heading about producers.
func (s *source) odd(folder string) (string, error) {
	p, err := s.load(folder)
	if err != nil {
		return "", err
	}
	for _, f := range p.files {
		if f.Doc == nil {
			continue
		}
		doc := new(comment.Parser).Parse(f.Doc.Text())
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
	return "", fmt.Errorf("the comment of package %s has no heading %q", folder, oddHeading)
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
