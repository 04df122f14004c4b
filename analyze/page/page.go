package page

import (
	"html"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// A Page is a report.
type Page struct {
	Title    string
	Subtitle string // when and where it was
	Tiles    []Tile
	Sections []Section
	// RequestCommands show a request of which the page has no waterfall; RID stands for it.
	RequestCommands []string
	Provenance      Provenance
}

// Provenance is how a page came to be.
type Provenance struct {
	Version string // of sgtrace
	Command string // as it was given
	Time    time.Time
}

// A Section is figures about one question.
type Section struct {
	ID    string // its anchor; "" is by number
	Title string
	// Lead is the answer in a sentence, and Points are what it rests on.
	Lead    string
	Points  []string
	Facts   []overview.Fact
	Note    string   // what it was looked for in
	Notes   []string // what is doubtful
	Figures []*Figure
	// Requests are those of which its figures have values for the script; nil is none.
	Requests *RequestTimes
}

// A Figure is something to look at.
type Figure struct {
	ID      string // its anchor; "" is by number
	Title   string
	Caption string // how to read it
	// Defined is the heading in docs/METRICS.md under which the numbers are defined.
	Defined string
	// Command is the command line that prints the same numbers.
	Command string
	Notes   []string // what is doubtful, or left out
	// Shows are the findings that can be seen in it, and Role the servers that it is
	// about; "" is all.
	Shows []finding.Kind
	Role  string
	Body  chart.Body
}

// AddGate shows behind the summary what came of a gate. command prints the same.
func (p *Page) AddGate(r *gate.Result, command string) {
	f := TableOf(r.Report(), 0, "", command)
	s := Section{ID: "gate", Title: "Gate", Lead: f.Title, Figures: []*Figure{f}}
	f.Title = "Conditions"
	p.Sections = slices.Insert(p.Sections, 1, s)
}

// Write writes the page.
func Write(w io.Writer, p Page) error {
	view, err := newPageView(&p)
	if err != nil {
		return err
	}
	return pageTemplate().Execute(w, view)
}

// When returns the time as the page shows it.
func (m Provenance) When() string {
	at := trace.Time(m.Time.UnixNano())
	return words.Clock(at).Format("2006-01-02 15:04 ") + words.ZoneAt(at)
}

// A Source is what a report is of, as arguments of 'sgtrace report'.
type Source struct {
	Select []string // flags that choose a part: "--from", "+30s"
	Inputs []string
}

// Command returns the command line of a report about the source, to be pasted into a
// shell.
func (s Source) Command(flags ...string) string { return s.Of("report", flags...) }

// Of returns the command line of any command about the source.
func (s Source) Of(command string, flags ...string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", command}, flags, s.Select, s.Inputs))
}

// requestCommand shows a request, and aroundCommand cuts its time out of the traces of
// all ranks.
func (s Source) requestCommand(rid string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", "request", rid}, s.Inputs))
}

func (s Source) aroundCommand(rid string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", "merge", "--around", rid, "-o", "around.pftrace"}, s.Inputs))
}

// A Text is a sentence in which some words lead somewhere.
type Text []Piece

// A Piece is a part of a text. Href is where it leads to on the page, "#latency"; "" is
// nowhere.
type Piece struct{ Text, Href string }

// textTemplate defines how templates write a text.
const textTemplate = `{{define "text"}}{{range .}}{{if .Href}}<a href="{{.Href}}">{{printable .Text}}</a>{{else}}{{printable .Text}}{{end}}{{end}}{{end}}`

// glossary defines the words that reports use and a reader of a page may not know, who
// has no 'sgtrace help' at hand. docs/METRICS.md is more precise. The words of metrics are theirs.
var glossary = sync.OnceValue(func() map[string]string {
	words := map[string]string{
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
	}
	for _, m := range metric.All() {
		if m.Word != "" {
			words[m.Title] = m.Word
		}
	}
	return words
})

// defined matches the words of the glossary; TP0 stands for all of its kind.
var defined = lazyregexp.New(`\b(` + strings.Join(slices.Sorted(maps.Keys(glossary())), "|") + `|[TD]P\d+)\b`)

// explained returns a text in which the first of each defined word has its definition, for the
// pointer and for screen readers.
func explained(text string) template.HTML {
	text = table.Printable(text)
	var b strings.Builder
	from, seen := 0, map[string]bool{}
	for _, at := range defined.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		meaning := glossary()[word]
		if len(word) > 2 && word[1] == 'P' && (word[0] == 'T' || word[0] == 'D') && meaning == "" {
			meaning = strings.Replace(glossary()[word[:2]+"0"], "rank 0", "rank "+word[2:], 1)
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
