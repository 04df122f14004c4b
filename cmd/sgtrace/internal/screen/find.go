package screen

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/similar"
)

// Find returns the parts of the page that define a word: rows of tables about it, items and paragraphs that
// introduce it, and sections that have it in their heading or are about the schema of that name. Each comes
// with its heading.
func (p *Page) Find(word string) *Page {
	word = fold(word)
	out := &Page{}
	for i := range p.Sections {
		s := &p.Sections[i]
		if slices.ContainsFunc(titleWords(s.Title), func(t string) bool { return t == word }) || s.names(word) {
			out.Sections = append(out.Sections, *s)
			continue
		}
		found := Section{Level: s.Level, Title: s.Title}
		for k := range s.Blocks {
			if block, ok := s.Blocks[k].find(word); ok {
				found.Blocks = append(found.Blocks, block)
			}
		}
		if len(found.Blocks) > 0 {
			out.Sections = append(out.Sections, found)
		}
	}
	return out
}

// find returns the part of the block that defines a word.
func (k *Block) find(word string) (Block, bool) {
	if k.Table == nil {
		return *k, strings.Contains(fold(k.Text), word) && slices.Contains(introduced(k.Text), word) // checks the cheap condition first
	}
	rows := k.Table[:1:1]
	for _, row := range k.Table[1:] {
		if slices.Contains(terms(row[0]), word) {
			rows = append(rows, row)
		}
	}
	return Block{Table: rows}, len(rows) > 1
}

// names reports whether the section says that it is about a schema.
func (s *Section) names(word string) bool {
	return strings.HasPrefix(word, "sgtrace.") && slices.ContainsFunc(s.Blocks, func(k Block) bool {
		return k.Table == nil && strings.Contains(fold(k.Text), word)
	})
}

// Words returns all words that the page defines, each once, sorted.
func (p *Page) Words() []string {
	var words []string
	for i := range p.Sections {
		s := &p.Sections[i]
		words = append(words, titleWords(s.Title)...)
		for k := range s.Blocks {
			words = append(words, introduced(s.Blocks[k].Text)...)
			for r, row := range s.Blocks[k].Table {
				if r > 0 {
					words = append(words, terms(row[0])...)
				}
			}
		}
	}
	return order.Distinct(words)
}

// similar returns a few words that the page defines and that resemble the given one.
func (p *Page) similar(word string) []string {
	const few = 5
	type near struct {
		word string
		away int
	}
	var list []near
	word = fold(word)
	for _, w := range p.Words() {
		away := similar.Distance(word, w)
		if strings.Contains(w, word) || len(w) > 3 && strings.Contains(word, w) {
			away = min(away, 1)
		}
		if away <= min(3, len(word)/2) && !strings.HasPrefix(w, "sgtrace.") {
			list = append(list, near{w, away})
		}
	}
	slices.SortStableFunc(list, func(x, y near) int { return x.away - y.away })
	var words []string
	for _, n := range list[:min(few, len(list))] {
		if n.away > list[0].away {
			break // there are better ones
		}
		words = append(words, n.word)
	}
	return words
}

// fold normalizes the spellings of a word: "Exposed copy", "exposed_copy_ns".
func fold(word string) string {
	word = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), " ", "_")
	for _, unit := range []string{"_unix_ns", "_ns", "_bytes"} {
		if rest, ok := strings.CutSuffix(word, unit); ok {
			return rest
		}
	}
	return word
}

var (
	code       = lazyregexp.New("`([^`]+)`")
	introduces = lazyregexp.New(`(?:^|[\s(])\*{1,2}([A-Za-z][^*]*)\*{1,2}`)
)

// terms returns the terms that the first cell of a row explains: everything marked as code, or else its comma-separated words.
func terms(cell string) []string {
	out := order.Each(code.FindAllStringSubmatch(cell, -1), func(m []string) string { return fold(m[1]) })
	if out == nil {
		for term := range strings.SplitSeq(plain(cell), ",") {
			out = append(out, fold(term))
		}
	}
	return out
}

// introduced returns the words that a text emphasizes: *lead rank*, **Percentiles are nearest rank**.
func introduced(text string) []string {
	return order.Each(introduces.FindAllStringSubmatch(text, -1), func(m []string) string { return fold(strings.TrimRight(m[1], ".:")) })
}

// titleWords returns the long words of a heading, and all of it.
func titleWords(title string) []string {
	words := []string{fold(title)}
	for word := range strings.FieldsSeq(strings.ToLower(plain(title))) {
		word = strings.Trim(word, ",:.")
		if len(word) > 3 {
			words = append(words, word)
		}
	}
	return words
}
