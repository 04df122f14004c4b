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
	Subtitle string // of the capture: when and where
	Tiles    []Tile
	Sections []Section
	// RequestCommands show a request that has no waterfall on the page; RID stands for its ID.
	RequestCommands []string
	Provenance      Provenance
}

// Provenance says how a page was made.
type Provenance struct {
	Version string // sgtrace's
	Command string // as the user typed it
	Time    time.Time
}

// A Section has figures that answer one question.
type Section struct {
	ID    string // anchor; "" gets one by number
	Title string
	// Lead is the answer in a sentence, and Points support it.
	Lead    string
	Points  []string
	Facts   []overview.Fact
	Note    string   // what was checked
	Notes   []string // caveats
	Figures []*Figure
	// Requests are the times of the requests whose values its figures have packed for the script; nil if none.
	Requests *RequestTimes
}

// A Figure shows one chart, table, or list.
type Figure struct {
	ID      string // anchor; "" gets one by number
	Title   string
	Caption string // how to read it
	// Defined is the heading in docs/METRICS.md under which the numbers are defined.
	Defined string
	// Command is the command line that prints the same numbers.
	Command string
	Notes   []string // caveats, and what is not shown
	// Shows are the kinds of findings visible in the figure. Role is the role of its servers; "" means all.
	Shows []finding.Kind
	Role  string
	Body  chart.Body
}

// AddGate inserts the result of a gate after the summary. command prints the same.
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

// When returns the time for display.
func (m Provenance) When() string {
	at := trace.Time(m.Time.UnixNano())
	return words.Clock(at).Format("2006-01-02 15:04 ") + words.ZoneAt(at)
}

// A Source is what a report covers, as arguments of 'sgtrace report'.
type Source struct {
	Select []string // flags that select a part: "--from", "+30s"
	Inputs []string
}

// Command returns the command line of a report on the source, quoted for a shell.
func (s Source) Command(flags ...string) string { return s.Of("report", flags...) }

// Of returns the command line of any command on the source.
func (s Source) Of(command string, flags ...string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", command}, flags, s.Select, s.Inputs))
}

// requestCommand shows a request; aroundCommand cuts its time out of the traces of all ranks.
func (s Source) requestCommand(rid string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", "request", rid}, s.Inputs))
}

func (s Source) aroundCommand(rid string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", "merge", "--around", rid, "-o", "around.pftrace"}, s.Inputs))
}

// A Text is a sentence in which some words are links.
type Text []Piece

// A Piece is a part of a text. Href is its link on the page, such as "#latency"; "" if none.
type Piece struct{ Text, Href string }

// textTemplate defines the template "text", which writes a Text.
const textTemplate = `{{define "text"}}{{range .}}{{if .Href}}<a href="{{.Href}}">{{printable .Text}}</a>{{else}}{{printable .Text}}{{end}}{{end}}{{end}}`

// glossary explains words in reports that a reader may not know; on a page there is no 'sgtrace help'.
// docs/METRICS.md is more precise. Metrics bring their own explanations.
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

// defined matches the words of the glossary. TP0 and DP0 stand for all ranks of their kind.
var defined = lazyregexp.New(`\b(` + strings.Join(slices.Sorted(maps.Keys(glossary())), "|") + `|[TD]P\d+)\b`)

// explained returns a text as HTML in which the first use of each glossary word carries its definition, for the
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
	return template.HTML(b.String()) // all parts are escaped
}
