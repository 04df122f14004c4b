package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// severities are the constants of package trace, and what messages call them.
var severities = map[string]string{"Info": "info", "Notice": "notice", "DataLoss": "data loss", "Error": "error"}

// severityOf are functions of the packages that report with one severity, exported or
// not.
var severityOf = map[string]string{"lose": "data loss", "notice": "notice"}

// isCode matches what looks like the code of a diagnostic.
var isCode = regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`)

// verbs are those of package fmt in a message.
var verbs = regexp.MustCompile(`"?%(\[\d\])?[+#]?[a-z]"?`)

// A report is a place in the code that reports a diagnostic.
type report struct{ severity, message string }

// diagnostics prints all diagnostics: what they say, and what the user can do.
func (s *source) diagnostics() (string, error) {
	found := map[string][]report{}
	packages, err := s.below(".")
	if err != nil {
		return "", err
	}
	for _, p := range packages {
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				if code, r, ok := p.reportAt(n); ok {
					found[code] = append(found[code], r)
				}
				return true
			})
		}
	}
	for code := range found {
		if _, ok := advice[code]; !ok && severity(found[code]) != "" {
			return "", fmt.Errorf("diagnostic %s: say in scripts/formats/advice.go what the user can do about it", code)
		}
	}
	out := grid{heads: []string{"code", "severity", "says", "what to do"}}
	for _, code := range slices.Sorted(maps.Keys(advice)) {
		reports := found[code]
		if reports == nil {
			return "", fmt.Errorf("diagnostic %s of scripts/formats/advice.go is reported nowhere", code)
		}
		a := advice[code]
		r := report{cmp.Or(a.severity, severity(reports)), a.says}
		if messages := messagesOf(reports); r.message == "" && len(messages) == 1 {
			r.message = messages[0]
		}
		if r.severity == "" || r.message == "" {
			return "", fmt.Errorf("diagnostic %s: its severity (%s) cannot be told from the code, or it has not one message but %q; say it in scripts/formats/advice.go",
				code, r.severity, messagesOf(reports))
		}
		out.rows = append(out.rows, []string{"`" + code + "`", r.severity, r.message, a.do})
	}
	return out.String(), nil
}

// severity returns the highest of some reports.
func severity(reports []report) string {
	order := []string{"", "info", "notice", "data loss", "error"}
	at := 0
	for _, r := range reports {
		at = max(at, slices.Index(order, r.severity))
	}
	return order[at]
}

// messagesOf returns the messages of some reports, each once.
func messagesOf(reports []report) (messages []string) {
	for _, r := range reports {
		if r.message != "" && !slices.Contains(messages, r.message) {
			messages = append(messages, r.message)
		}
	}
	return messages
}

// reportAt reads a call, a literal or an assignment that has the code of a diagnostic in it.
func (p *pkg) reportAt(n ast.Node) (code string, r report, ok bool) {
	var parts []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		parts = n.Args
		switch f := n.Fun.(type) {
		case *ast.SelectorExpr:
			r.severity = severityOf[strings.ToLower(f.Sel.Name)]
		case *ast.Ident:
			r.severity = severityOf[strings.ToLower(f.Name)]
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
