package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// nsysTables prints which tables of Nsight Systems are read, and what they were called.
func (s *source) nsysTables() (string, error) {
	packages, err := s.below("nsysexport")
	if err != nil {
		return "", err
	}
	out := grid{heads: []string{"table", "required columns", "columns with two names", "about"}}
	for _, p := range packages {
		out.rows = append(out.rows, p.nsysTables()...)
	}
	return out.String(), nil
}

func (p *pkg) nsysTables() (rows [][]string) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.VAR {
				continue
			}
			about := ""
			if decl.Doc != nil {
				// It begins with the name of the variable.
				_, about, _ = strings.Cut(strings.Join(strings.Fields(decl.Doc.Text()), " "), " ")
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok {
					return true
				}
				names := field(lit, "names")
				if names == nil {
					return true
				}
				need, both := p.columns(field(lit, "columns"))
				rows = append(rows, []string{strings.Replace(quoteAll(p.cell(names)), ", ", ", once ", 1), quoteAll(need), both, about})
				return false
			})
		}
	}
	return rows
}

// field returns a field of a literal by its name.
func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && sameName(id.Name, name) {
				return kv.Value
			}
		}
	}
	return nil
}

// columns returns the columns that a table must have, and those that have two names.
// Columns are in a literal, or in what a function of the package adds to them.
func (p *pkg) columns(e ast.Expr) (need, both string) {
	var needed, renamed []string
	var visit func(n ast.Node) bool
	seen := map[string]bool{}
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && !seen[id.Name] {
				seen[id.Name] = true
				if f := p.function(id.Name); f != nil {
					ast.Inspect(f.Body, visit)
				}
			}
		case *ast.SelectorExpr: // the columns of another table
			if id, ok := n.X.(*ast.Ident); ok && sameName(n.Sel.Name, "columns") {
				if other, _ := p.variable(id.Name); other != nil {
					ast.Inspect(field(other, "columns"), visit)
				}
			}
		case *ast.CompositeLit:
			name := field(n, "name")
			if name == nil {
				return true
			}
			text, _ := p.text(name)
			if field(n, "need") != nil {
				needed = append(needed, text)
			}
			if or := field(n, "or"); or != nil {
				other, _ := p.text(or)
				renamed = append(renamed, "`"+text+"` or `"+other+"`")
			}
		}
		return true
	}
	if e != nil {
		ast.Inspect(e, visit)
	}
	return strings.Join(needed, ", "), strings.Join(renamed, ", ")
}

func (p *pkg) function(name string) *ast.FuncDecl {
	for _, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == name {
				return fn
			}
		}
	}
	return nil
}

func quoteAll(list string) string {
	if list == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(list, ", ", "`, `") + "`"
}
