package routerlog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is a log of SGLang's router.
var Format = &format.Format{
	Name:   "router log",
	Noun:   "router log",
	Doc:    "what SGLang's router (sgl-router, sgl-model-gateway, smg) says of servers that it took out, and of requests that failed",
	For:    "'sgtrace report'",
	Sniff:  sniff,
	Index:  index,
	Series: true,
	Text:   true,
}

// sign is a line of the router, as text or as JSON. Few runs need it, and it takes half a millisecond.
var sign = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z? +(?:TRACE|DEBUG|INFO|WARN|ERROR) .{0,400}?\b` + modules + `[\w:-]*: |"target": ?"` + modules + `(?:::|")`)
})

const modules = `(?:sglang_router_rs|sgl_model_gateway|smg)`

// sniff looks for the words before it tries the expression, which takes longer. Of JSON, the first line
// must be a whole record of a log: traces of the router have its names, too.
func sniff(head []byte) bool {
	if !bytes.Contains(head, []byte("smg")) && !bytes.Contains(head, []byte("sgl_model_gateway")) && !bytes.Contains(head, []byte("sglang_router_rs")) {
		return false
	}
	if text := bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"); len(text) > 0 && (text[0] == '{' || text[0] == '[' && bytes.HasPrefix(bytes.TrimLeft(text[1:], " \r\n"), []byte("{"))) {
		line, _, whole := bytes.Cut(text, []byte("\n"))
		record := bytes.HasPrefix(line, []byte(`{"log":"`)) || bytes.Contains(line, []byte(`"level"`)) && bytes.Contains(line, []byte(`"timestamp"`))
		if !record || !whole && !json.Valid(line) {
			return false
		}
	}
	return sign().Match(head)
}

// index reads a log.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	r := newReader(in.Name, opt)
	size, err := logline.Read(content, in.Name, opt.Diags, func(b []byte, n int64) {
		r.f.Line(n)
		r.line = n
		r.take(b)
	})
	src := r.f.Source()
	src.Bytes, src.Lines, src.Read, src.Other, src.FirstOther = size, int(r.line), r.read, r.other, r.first
	return &format.Source{}, err
}

// A reader reads one log.
type reader struct {
	f       *series.Filler
	around  *logline.Unwrapper
	stamps  logline.Stamper
	name    string
	line    int64
	read    int // lines of which something was kept
	other   int // warnings and errors that nothing here knows
	first   int // line of the first of these; 0 is none
	places  map[string]int32
	errors  map[int32]int32 // series of failed requests, by place
	pending []byte
}

func newReader(name string, opt *format.Options) *reader {
	f := opt.Series.Fill(name, "router log")
	zone := &f.Source().Zone
	zone.By = "stamps of the router, which are UTC"
	return &reader{f: f, around: logline.New(), name: name, places: map[string]int32{}, errors: map[int32]int32{}}
}

// place is that of the router, or of a server that it calls by its URL.
func (r *reader) place(of []byte, role string) int32 {
	key := role + " " + string(of)
	place, ok := r.places[key]
	if !ok {
		server := series.Server{Name: string(of), Role: role}
		place = r.f.Place(series.Place{Server: r.f.Server(server), Rank: trace.NoRank, GPU: series.NoGPU})
		if len(r.places) < 1<<14 {
			r.places[key] = place
		}
	}
	return place
}

// A said is one line, without what is around it.
type said struct {
	at      trace.Time
	level   []byte
	message []byte // with the fields that follow it as text
}

// take reads a line.
func (r *reader) take(b []byte) {
	b = r.around.Bare(b)
	var x said
	ok := false
	if i := bytes.IndexByte(b, '{'); i >= 0 && bytes.Contains(b[i:min(len(b), i+600)], []byte(`"level"`)) {
		ok = r.object(b[i:], &x)
	} else {
		ok = r.text(b, &x)
	}
	if !ok {
		r.unknown(b)
		return
	}
	r.f.Saw(x.at)
	r.says(&x)
}

// strange counts a line that tells of trouble in words that nothing here knows.
func (r *reader) strange() {
	if r.other++; r.first == 0 {
		r.first = int(r.line)
	}
}

// unknown counts a line of something else.
func (r *reader) unknown(b []byte) {
	if bytes.Contains(b, []byte("panicked at")) {
		r.strange()
	}
}
