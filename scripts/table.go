package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A row is one of a table in the code: its fields and the comments with it.
type row struct {
	cells  map[string]ast.Expr // by field, in lower case; "key" and "value" of maps, "value" of plain lists
	above  string              // the comment over it, or over the rows that it goes on from
	beside string              // the comment on its line
}

// withTable returns the package in a folder, or in the folders in it, that has a table.
func (s *source) withTable(folder, name string) (*pkg, error) {
	packages, err := s.below(folder)
	if err != nil {
		return nil, err
	}
	packages = slices.DeleteFunc(packages, func(p *pkg) bool {
		lit, _ := p.variable(name)
		return lit == nil
	})
	if len(packages) != 1 {
		return nil, fmt.Errorf("%d packages in %s have a table %s", len(packages), folder, name)
	}
	return packages[0], nil
}

// rows returns those of a variable of the package. Comments over a row hold for those
// below it, too, up to a blank line or the next such comment.
func (p *pkg) rows(name string) []row {
	lit, f := p.variable(name)
	fields := p.elementFields(lit.Type)
	comments := p.comments(f)
	var rows []row
	above, lastLine := "", 0
	for _, e := range lit.Elts {
		line := p.fset.Position(e.Pos()).Line
		if line > lastLine+1 && line != lastLine { // something stands between them
			above = p.commentAbove(comments, line)
		}
		lastLine = p.fset.Position(e.End()).Line
		r := row{above: above, beside: comments[lastLine].beside, cells: map[string]ast.Expr{}}
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			r.cells["key"], r.cells["value"] = kv.Key, kv.Value
		} else {
			r.cells["value"] = e
		}
		if inner, ok := r.cells["value"].(*ast.CompositeLit); ok {
			for i, cell := range inner.Elts {
				if kv, ok := cell.(*ast.KeyValueExpr); ok {
					r.cells[strings.ToLower(kv.Key.(*ast.Ident).Name)] = kv.Value
				} else if i < len(fields) {
					r.cells[strings.ToLower(fields[i])] = cell
				}
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func (p *pkg) elementFields(t ast.Expr) []string {
	switch t := t.(type) {
	case *ast.ArrayType:
		return p.fields(t.Elt)
	case *ast.MapType:
		return p.fields(t.Value)
	}
	return nil
}

// A lineComment is what comments say on a line.
type lineComment struct {
	beside string // code
	alone  string
}

// comments returns those of a file by line; one over several lines is on the last one.
func (p *pkg) comments(f *ast.File) map[int]lineComment {
	m := map[int]lineComment{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			pos := p.fset.Position(c.Pos())
			text := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
			if strings.TrimSpace(p.lines[f][pos.Line-1][:pos.Column-1]) != "" {
				m[pos.Line] = lineComment{beside: text}
			} else {
				m[pos.Line] = lineComment{alone: strings.TrimSpace(m[pos.Line-1].alone + " " + text)}
			}
		}
	}
	return m
}

// commentAbove returns the comment that ends on the line before; "" behind a blank one.
func (p *pkg) commentAbove(comments map[int]lineComment, line int) string {
	return comments[line-1].alone
}

// table prints a table of the code as one of the page. Columns are given as
// "heading: field", and separated by ";". What a field stands for is code if it is a text
// of the wire, which "heading: field" says by a heading in backquotes.
//
// Fields are those of the rows, "key" and "value", and "why": what comments say.
func (s *source) table(folder, name, columns string) (string, error) {
	p, err := s.withTable(folder, name)
	if err != nil {
		return "", err
	}
	rows := p.rows(name)
	var out grid
	var fields []string
	var code []bool
	for c := range strings.SplitSeq(columns, ";") {
		heading, field, _ := strings.Cut(c, ":")
		heading = strings.TrimSpace(heading)
		code = append(code, strings.HasPrefix(heading, "`"))
		out.heads = append(out.heads, strings.Trim(heading, "`"))
		fields = append(fields, strings.TrimSpace(field))
	}
	for _, r := range rows {
		var cells []string
		for i, field := range fields {
			cell := ""
			switch e, ok := r.cells[strings.ToLower(field)]; {
			case field == "why":
				cell = r.why()
			case ok:
				cell = p.cell(e)
			}
			switch {
			case code[i] && cell == "":
				cell = "`\"\"`"
			case code[i]:
				cell = "`" + cell + "`"
			}
			cells = append(cells, cell)
		}
		out.rows = append(out.rows, cells)
	}
	return out.String(), nil
}

// why returns the text of the comments with a row.
func (r *row) why() string {
	switch {
	case r.above == "" || r.beside == "":
		return strings.TrimSuffix(r.above+r.beside, ".")
	default:
		return strings.TrimSuffix(r.above, ".") + ": " + r.beside
	}
}

// cell returns what an expression says: a text, a number, or the name of a constant
// without the name of its type.
func (p *pkg) cell(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		kind := p.types[id.Name]
		if text, known := p.names[id.Name]; known && kind == "" {
			return text
		}
		return constantWords(id.Name, kind)
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if id, ok := sel.X.(*ast.Ident); ok {
			if other := p.imported(id.Name); other != nil {
				return other.cell(sel.Sel)
			}
		}
	}
	if text, ok := p.text(e); ok {
		return text
	}
	if lit, ok := e.(*ast.CompositeLit); ok {
		parts := order.Each(lit.Elts, p.cell)
		return strings.Join(parts, ", ")
	}
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.OR {
		return p.cell(b.X) + ", " + p.cell(b.Y)
	}
	return ""
}

// camel matches the words of a name in Go.
var camel = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// constantWords returns those of the name of a constant that are not in the name of its type:
// "prefill" of PrefillPhase, "group size" of argGroupSize. None and Any say nothing.
func constantWords(name, kind string) string {
	words := strings.Fields(strings.ToLower(strings.Join(camel.FindAllString(name, -1), " ")))
	kind = strings.ToLower(kind)
	if len(words) > 1 && kind != "" && strings.Contains(kind, words[0]) {
		words = words[1:]
	}
	if n := len(words); n > 1 && words[n-1] == kind {
		words = words[:n-1]
	}
	switch text := strings.Join(words, " "); text {
	case "none", "any", "true", "false":
		return ""
	default:
		return text
	}
}

// A grid is a table of the page.
type grid struct {
	heads []string
	rows  [][]string
}

// String prints the table in Markdown, without columns that are empty.
func (g *grid) String() string {
	keep := make([]bool, len(g.heads))
	for i := range g.heads {
		keep[i] = slices.ContainsFunc(g.rows, func(r []string) bool { return r[i] != "" })
	}
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			if keep[i] {
				b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
			}
		}
		b.WriteString("|\n")
	}
	line(g.heads)
	for i := range g.heads {
		if keep[i] {
			b.WriteString("|---")
		}
	}
	b.WriteString("|\n")
	for _, r := range g.rows {
		line(r)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

//go:embed FORMATS.md.tmpl
var formatsTemplate string

// formats writes docs/FORMATS.md to standard output. The page is the template FORMATS.md.tmpl. What it
// says about producers is not in it but in the source: comments, under "# What is odd"; tables, whose
// rows have the reason beside them; and the table of messages of package trace.
func formats([]string) error {
	page, err := formatsPage(".")
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(page)
	return err
}

// formatsPage makes the page from the module in dir.
func formatsPage(dir string) ([]byte, error) {
	src := newSource(dir)
	t, err := template.New("FORMATS.md").Funcs(template.FuncMap{
		"odd":         src.odd,
		"table":       src.table,
		"forms":       src.forms,
		"nsysTables":  src.nsysTables,
		"diagnostics": diagnostics,
	}).Parse(formatsTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, nil); err != nil {
		return nil, err
	}
	return append(bytes.TrimSpace(b.Bytes()), '\n'), nil
}

// diagnostics prints the table of messages.
func diagnostics() string {
	out := grid{heads: []string{"code", "severity", "says", "what to do"}}
	for _, m := range trace.Messages() {
		out.rows = append(out.rows, []string{"`" + m.Code + "`", m.Severity.String(), m.Shown(), m.Advice})
	}
	return out.String()
}
