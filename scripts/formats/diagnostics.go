package main

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// reporters are the packages that report diagnostics.
var reporters = []string{"trace", "otlpjson", "request", "chrometrace", "nsysexport", "profile", "convert", "cmd/sgtrace"}

// severities are the constants of package trace, and what messages call them.
var severities = map[string]string{"Info": "info", "Notice": "notice", "DataLoss": "data loss", "Error": "error"}

// severityOf are functions of the packages that report with one severity.
var severityOf = map[string]string{"lose": "data loss", "notice": "notice"}

// isCode matches what looks like the code of a diagnostic.
var isCode = regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`)

// verbs are those of package fmt in a message.
var verbs = regexp.MustCompile(`"?%(\[\d\])?[+#]?[a-z]"?`)

// A report is a place in the code that reports a diagnostic.
type report struct{ severity, message string }

// diagnostics prints all diagnostics: what they say, and what the user can do.
func (s *source) diagnostics() (string, error) {
	found := map[string]report{}
	for _, folder := range reporters {
		p, err := s.load(folder)
		if err != nil {
			return "", err
		}
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				if code, r, ok := p.reportAt(n); ok {
					found[code] = merge(found[code], r)
				}
				return true
			})
		}
	}
	for code := range found {
		if _, ok := advice[code]; !ok && found[code].severity != "" {
			return "", fmt.Errorf("diagnostic %s: say in scripts/formats/advice.go what the user can do about it", code)
		}
	}
	out := grid{heads: []string{"code", "severity", "says", "what to do"}}
	for _, code := range slices.Sorted(maps.Keys(advice)) {
		r, ok := found[code]
		if !ok {
			return "", fmt.Errorf("diagnostic %s of scripts/formats/advice.go is reported nowhere", code)
		}
		a := advice[code]
		if a.severity != "" {
			r.severity = a.severity
		}
		if a.says != "" {
			r.message = a.says
		}
		if r.severity == "" || r.message == "" {
			return "", fmt.Errorf("diagnostic %s: its severity (%s) or message (%s) cannot be told from the code; say it in scripts/formats/advice.go",
				code, r.severity, r.message)
		}
		out.rows = append(out.rows, []string{"`" + code + "`", r.severity, r.message, a.do})
	}
	return out.String(), nil
}

// merge keeps the first message and the higher severity of two reports of one code.
func merge(a, b report) report {
	order := []string{"", "info", "notice", "data loss", "error"}
	if slices.Index(order, b.severity) > slices.Index(order, a.severity) {
		a.severity = b.severity
	}
	if a.message == "" {
		a.message = b.message
	}
	return a
}

// reportAt reads a call, a literal or an assignment that has the code of a diagnostic in it.
func (p *pkg) reportAt(n ast.Node) (code string, r report, ok bool) {
	var parts []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		parts = n.Args
		switch f := n.Fun.(type) {
		case *ast.SelectorExpr:
			r.severity = severityOf[f.Sel.Name]
		case *ast.Ident:
			r.severity = severityOf[f.Name]
		}
	case *ast.CompositeLit:
		parts = n.Elts
	case *ast.AssignStmt:
		parts = n.Rhs
	default:
		return "", r, false
	}
	for _, e := range parts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		name := ""
		switch e := e.(type) {
		case *ast.Ident:
			name = e.Name
		case *ast.SelectorExpr:
			name = e.Sel.Name
		}
		if word, ok := severities[name]; ok {
			r.severity = word
			continue
		}
		if lit, ok := e.(*ast.BasicLit); ok && code == "" {
			if text, _ := p.text(lit); isCode.MatchString(text) {
				code = text
				continue
			}
		}
		if text := p.message(e); code != "" && strings.Contains(text, " ") {
			r.message = text
		}
	}
	if _, known := advice[code]; code == "" || !known && r.severity == "" {
		return "", r, false
	}
	return code, r, true
}

// message returns the text of a message with dots for what is put in.
func (p *pkg) message(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := p.text(e)
		return verbs.ReplaceAllString(text, "…")
	case *ast.BinaryExpr:
		return p.message(e.X) + p.message(e.Y)
	case *ast.CallExpr:
		if sel, ok := e.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sprintf" {
			return p.message(e.Args[0])
		}
	}
	return "…"
}
