package page

import (
	"html"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// glossary defines the words that reports use and a reader of a page may not know, who
// has no 'sgtrace help' at hand. docs/METRICS.md is more precise.
var glossary = withMetrics(map[string]string{
	"p50":       "median: half of the values are no larger",
	"p90":       "90 % of the values are no larger",
	"p99":       "99 % of the values are no larger",
	"KV cache":  "GPU memory for the keys and values of the tokens of running requests; when it is full, requests wait",
	"TP0":       "tensor-parallel rank 0: ranks of a TP group compute each step together",
	"DP0":       "data-parallel rank 0: DP ranks share the requests among them",
	"prefill":   "computing the prompt, which ends with the first token",
	"decode":    "computing output tokens, one step for one token of each running request",
	"bootstrap": "the wait until prefill and decode servers know of each other, and the decode server has room in its KV cache",
	"straggler": "a rank that the others of its group wait for again and again",
	"exposed":   "while nothing computes: communication or copies that computation does not hide",
	"retracted": "taken out of the batch because the KV cache was full, to be computed again later",
	"goodput":   "share, or rate, of requests that met every objective (SLO)",
})

// withMetrics adds the metrics whose names are such words.
func withMetrics(words map[string]string) map[string]string {
	for _, m := range metric.All() {
		if m.Word != "" {
			words[m.Title] = m.Word
		}
	}
	return words
}

// defined matches the words of the glossary; TP0 stands for all of its kind.
var defined = regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(glossary)), "|") + `|[TD]P\d+)\b`)

// explained is a text in which the first of each defined word has its definition, for the
// pointer and for screen readers.
func explained(text string) template.HTML {
	text = table.Printable(text)
	var b strings.Builder
	from, seen := 0, map[string]bool{}
	for _, at := range defined.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		meaning := glossary[word]
		if len(word) > 2 && word[1] == 'P' && (word[0] == 'T' || word[0] == 'D') && meaning == "" {
			meaning = strings.Replace(glossary[word[:2]+"0"], "rank 0", "rank "+word[2:], 1)
		}
		if meaning == "" || seen[meaning] {
			continue
		}
		seen[meaning] = true
		b.WriteString(html.EscapeString(text[from:at[0]]) + `<abbr title="` + html.EscapeString(meaning) + `">` + html.EscapeString(word) + "</abbr>")
		from = at[1]
	}
	b.WriteString(html.EscapeString(text[from:]))
	return template.HTML(b.String()) // of escaped parts only
}
