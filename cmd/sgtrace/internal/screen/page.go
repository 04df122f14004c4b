package screen

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// A Page is a parsed page.
type Page struct{ Sections []Section }

// A Section is everything below a heading, up to the next one of any level.
type Section struct {
	Level  int // of the heading: 1 is the title of the page
	Title  string
	Blocks []Block
}

// A Block is a piece of text. It has exactly one of Text, Code, and Table.
type Block struct {
	Text  string // of a paragraph or an item, on one line
	Item  string // the item's marker: "-", "1."; "" for a paragraph
	Depth int    // of an item: 0 is the outermost
	Code  []string
	Table [][]string // rows of cells; the first one is the header
}

var (
	heading = lazyregexp.New(`^(#+) +(.*)$`)
	item    = lazyregexp.New(`^( *)([-*]|[0-9]+\.) +(.*)$`)
)

// Parse parses a page.
func Parse(markdown string) *Page {
	p := &Page{Sections: []Section{{}}}
	open := false // the last block continues
	code := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimRight(line, " \r\n")
		s := &p.Sections[len(p.Sections)-1]
		last := len(s.Blocks) - 1
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			if code = !code; code {
				s.Blocks = append(s.Blocks, Block{Code: []string{}})
			}
			open = false
		case code:
			s.Blocks[last].Code = append(s.Blocks[last].Code, line)
		case line == "":
			open = false
		case heading.MatchString(line):
			m := heading.FindStringSubmatch(line)
			p.Sections = append(p.Sections, Section{Level: len(m[1]), Title: m[2]})
			open = false
		case strings.HasPrefix(line, "|"):
			if last < 0 || !open || s.Blocks[last].Table == nil {
				s.Blocks = append(s.Blocks, Block{})
				last++
			}
			if cells := cellsOf(line); !isRule(cells) {
				s.Blocks[last].Table = append(s.Blocks[last].Table, cells)
			}
			open = true
		case item.MatchString(line):
			m := item.FindStringSubmatch(line)
			s.Blocks = append(s.Blocks, Block{Item: m[2], Depth: len(m[1]) / 2, Text: m[3]})
			open = true
		case open && s.Blocks[last].Table == nil:
			s.Blocks[last].Text += " " + strings.TrimSpace(line)
		default:
			s.Blocks = append(s.Blocks, Block{Text: strings.TrimSpace(line)})
			open = true
		}
	}
	return p
}

// cellsOf returns the cells of a row; \| does not end a cell.
func cellsOf(line string) []string {
	const bar = "\x00"
	line = strings.ReplaceAll(line, `\|`, bar)
	cells := strings.Split(strings.Trim(line, "| "), "|")
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(c), bar, "|")
	}
	return cells
}

// isRule reports whether a row only separates the header from the rest.
func isRule(cells []string) bool {
	return !slices.ContainsFunc(cells, func(c string) bool { return strings.Trim(c, "-:") != "" })
}

var (
	link     = lazyregexp.New(`\[([^\]]+)\]\(([^)]+)\)`)
	emphasis = lazyregexp.New(`(^|[\s("])(\*\*?)([^*]+)(\*\*?)`)
)

// plain strips the markup from a text.
func plain(text string) string {
	text = link.ReplaceAllString(text, "$1 ($2)")
	var b strings.Builder
	for i, part := range strings.Split(text, "`") { // every other one is code
		if i%2 == 0 {
			part = strings.ReplaceAll(emphasis.ReplaceAllString(part, "$1$3"), "**", "")
		}
		b.WriteString(part)
	}
	return b.String()
}
