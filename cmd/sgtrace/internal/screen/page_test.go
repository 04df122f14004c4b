package screen

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/docs"
)

const metrics = `# Metrics

What every *number* means,
and a [link](https://example.com).

## Rules

- **Unknown is not zero.** It is
  ` + "`null`" + ` in JSON.
- Times are ` + "`int64`" + `
  1. nested

| name | definition | unknown when |
|---|---|---|
| ` + "`ttft`, `ttft_ns`" + ` | time to the first token, which is long enough a text to make the table wider than a terminal | neither is there |
| ` + "`a\\|b`" + ` | one or the other | |

### Small

| a | b |
|--:|---|
| 1 | 2 |

    ` + "```" + `
    x := 1
    ` + "```" + `
`

func written(t *testing.T, p *Page, width int) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	const want = `METRICS
=======

What every number means, and a link
(https://example.com).

Rules
-----

- Unknown is not zero. It is null in JSON.
- Times are int64
  1. nested

  ttft, ttft_ns   time to the first token,
                  which is long enough a
                  text to make the table
                  wider than a terminal
                  unknown when: neither is
                  there
  a|b             one or the other

Small

a  b
-  -
1  2

        x := 1

`
	if got := written(t, Parse(metrics), 44); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestFind(t *testing.T) {
	p := Parse(metrics)
	for _, test := range []struct{ word, want string }{
		{"ttft", "first token"},
		{"TTFT_ns", "first token"},
		{"number", "What every number"},
		{"unknown is not zero", "null in JSON"},
		{"rules", "one or the other"}, // a heading prints everything below it
		{"small", "1  2"},
		{"1", "1  2"},
	} {
		if got := written(t, p.Find(test.word), 80); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q", test.word, got)
		}
	}
	if got := p.Find("first"); len(got.Sections) != 0 {
		t.Errorf("a word in a text defines nothing: %+v", got)
	}
	if got := written(t, p.Find("ttft"), 80); strings.Contains(got, "one or the other") {
		t.Errorf("a row that is about something else: %s", got)
	}
	if got := p.similar("tfft"); !slices.Equal(got, []string{"ttft"}) {
		t.Errorf("similar to tfft: %q", got)
	}
	if got := p.similar("xylophone"); len(got) != 0 {
		t.Errorf("similar to xylophone: %q", got)
	}
}

// The whole metrics page is printed and fits a terminal. No word is longer than a line.
func TestMetricsFit(t *testing.T) {
	p := Parse(docs.Metrics)
	text := written(t, p, 80)
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	all := squeeze(text)
	for i := range p.Sections {
		for k := range p.Sections[i].Blocks {
			block := &p.Sections[i].Blocks[k]
			pieces := append([]string{block.Text}, block.Code...)
			for r, row := range block.Table {
				if r > 0 {
					pieces = append(pieces, row...)
				}
			}
			for _, piece := range pieces {
				if !strings.Contains(all, squeeze(plain(piece))) {
					t.Errorf("not printed: %s", piece)
				}
			}
		}
	}
	if len(p.Words()) < 200 {
		t.Errorf("only %d words are defined", len(p.Words()))
	}
}

// Every suggested word can be looked up.
func TestWordsAreFound(t *testing.T) {
	p := Parse(docs.Metrics)
	for _, word := range p.Words() {
		if len(p.Find(word).Sections) == 0 {
			t.Errorf("%q is not found", word)
		}
	}
}
