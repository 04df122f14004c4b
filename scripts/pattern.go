package main

import (
	"fmt"
	"go/ast"
	"regexp/syntax"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
)

// forms prints the ways in which producers name their files.
func (s *source) forms() (string, error) {
	p, err := s.withTable("trace/naming", "forms")
	if err != nil {
		return "", err
	}
	rows := p.rows("forms")
	out := grid{heads: []string{"producer", "name of the file", "ends in", "not a rank's trace, but", "about"}}
	for _, r := range rows {
		call, ok := r.cells["re"].(*ast.CallExpr)
		if !ok {
			return "", fmt.Errorf("a form has no pattern")
		}
		text, ok := p.text(call.Args[0])
		if !ok {
			return "", fmt.Errorf("a form has a pattern that is not made of texts")
		}
		name, err := readable(text)
		if err != nil {
			return "", err
		}
		var cells []string
		for _, field := range []string{"producer", "", "ext", "what"} {
			cell := ""
			if e, ok := r.cells[field]; ok {
				cell = p.cell(e)
			}
			cells = append(cells, cell)
		}
		cells[1] = "`" + name + "`"
		if cells[2] != "" {
			cells[2] = "`" + cells[2] + "`"
		}
		out.rows = append(out.rows, append(cells, r.why()))
	}
	return out.String(), nil
}

// readable prints a pattern of file names as people write one: {tp} is a part with a
// name, N a number, [] what may be missing, * anything.
func readable(pattern string) (string, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(show(re), "**", "*"), nil
}

const lowercase = "abcdefghijklmnopqrstuvwxyz"

func show(re *syntax.Regexp) string {
	sub := func() string { return show(re.Sub[0]) }
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCapture:
		text := sub()
		if re.Name == "" || re.Name == "run" && strings.ContainsAny(text, lowercase) {
			return text // what the producer always writes
		}
		return "{" + re.Name + "}"
	case syntax.OpConcat:
		var b strings.Builder
		for _, s := range re.Sub {
			b.WriteString(show(s))
		}
		return b.String()
	case syntax.OpAlternate:
		parts := order.Each(re.Sub, show)
		return "(" + strings.Join(parts, " or ") + ")"
	case syntax.OpQuest:
		return "[" + sub() + "]"
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		switch text := sub(); text {
		case "N", "*":
			return text
		default:
			return text + "..."
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "*"
	case syntax.OpCharClass:
		return class(re.Rune)
	}
	return ""
}

// class prints a set of characters: a number, a separator, or anything.
func class(runes []rune) string {
	switch set := string(runes); {
	case set == "09":
		return "N"
	case strings.HasPrefix(set, "-") && len(runes) <= 6:
		return "-"
	default:
		return "*"
	}
}
