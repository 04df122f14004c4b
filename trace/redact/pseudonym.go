package redact

import (
	"encoding/hex"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Maker makes the pseudonyms of one input, for the rows of a dataset. Readers of it decide the same
// as they would from the original names: equal names get equal pseudonyms, so parts of requests, hosts,
// and ranks can still be told apart and joined, and the names of spans, threads, and services, from
// which requests are assembled, stay. What it makes of a text depends on the key, and on
// what the input itself says about hosts and ids. It is for one goroutine.
type Maker struct {
	all *Redactor // knows hosts, ids, and files
	ids *Redactor // knows ids, for texts that decide what a span is: a host may be called like a service
	// known are texts that were given pseudonyms, by what they are: many rows have the same.
	known   map[string]map[string]string
	columns columns
}

// NewMaker returns a Maker with the key of a Redactor.
func NewMaker(by *Redactor) *Maker {
	return &Maker{all: by.apart(), ids: by.apart(), known: map[string]map[string]string{}, columns: columns{}}
}

// LearnHost makes a host be replaced wherever it is part of a text.
func (m *Maker) LearnHost(host string) { m.all.LearnHost(host) }

// LearnFile makes the path of a file be replaced wherever it is part of a text, and the host
// that its name says.
func (m *Maker) LearnFile(path string) {
	m.all.LearnHost(naming.ParseFile(path).Host)
	m.all.LearnFile(path)
}

// LearnLabel makes the host of a label be replaced wherever it is part of a text.
func (m *Maker) LearnLabel(label string) {
	if host, _, err := naming.ParseLabel(label); err == nil {
		m.all.LearnHost(host)
	}
}

// LearnAttribute does so for the value of an attribute that is a host or an id.
func (m *Maker) LearnAttribute(key, text string) {
	m.all.learnAttribute(key, text)
	if !hostKeys.MatchString(key) {
		m.ids.learnAttribute(key, text)
	}
}

// hostKeys are attributes that name hosts.
var hostKeys = lazyregexp.New(`host|node|pod|peer|address`)

// A rule makes the pseudonym of a text.
type rule func(m *Maker, text string) string

// rules say how columns are redacted, by the tag redact of the fields of rows; those without the tag are
// texts in which names are looked for.
var rules = map[string]rule{
	"":           func(m *Maker, text string) string { return m.all.Scrub(text) },
	"own":        func(_ *Maker, text string) string { return text }, // a word of ours, or made before
	"host":       func(m *Maker, text string) string { return m.all.Host(text) },
	"request":    func(m *Maker, text string) string { return m.all.Request(text) },
	"structural": (*Maker).structural,
	"span":       (*Maker).span,
	"trace":      (*Maker).trace,
	"json":       func(m *Maker, text string) string { return m.json(text) },
}

// structural makes that of a text that says what a span is.
func (m *Maker) structural(text string) string { return m.ids.Scrub(text) }

// maxKept is how many pseudonyms of a kind are remembered: what most rows have.
const maxKept = 1 << 16

// cached returns the pseudonym of a text of some kind.
func (m *Maker) cached(kind, text string, make rule) string {
	names := m.known[kind]
	name, ok := names[text]
	if ok {
		return name
	}
	name = make(m, text)
	if names == nil || len(names) >= maxKept {
		names = map[string]string{}
		m.known[kind] = names
	}
	names[text] = name
	return name
}

// requestName matches the names of spans that end with the beginning of an id: "decode Req
// 7ca07386". A bootstrap room is none.
var requestName = lazyregexp.New(`^(.*[Rr]eq )([^0].*|0[^x].*)$`)

// span makes the name of a span.
func (m *Maker) span(name string) string {
	if found := requestName.FindStringSubmatch(name); found != nil {
		id := found[2]
		if scrubbed := m.ids.Scrub(id); scrubbed != id {
			return found[1] + scrubbed
		}
		return found[1] + m.all.Request(id)[:shownID]
	}
	return m.all.Scrub(name)
}

// shownID is how much of an id names of spans have.
const shownID = 8

// trace makes the id of a trace, of 32 hexadecimal digits. No trace stays none.
func (m *Maker) trace(id string) string {
	if strings.Trim(id, "0") == "" {
		return id
	}
	return hex.EncodeToString(m.all.digest("trace", []byte(id))[:16])
}

// Hash makes a hash that nobody can compare with that of a file.
func (m *Maker) Hash(hash string) string {
	return hex.EncodeToString(m.all.digest("hash", []byte(hash)))
}

// Text makes the pseudonym of a text in which nothing is to be seen.
func (m *Maker) Text(text string) string { return m.all.text(text) }

// Scrub replaces what is found in a text.
func (m *Maker) Scrub(text string) string { return m.all.Scrub(text) }

// Path makes the pseudonym of a path.
func (m *Maker) Path(path string) string { return m.all.Path(path) }

// Label makes that of a label, of which the rank stays. A label that cannot be read is any text.
func (m *Maker) Label(label string) string {
	host, _, err := naming.ParseLabel(label)
	switch {
	case label == "":
		return ""
	case err != nil:
		return m.all.text(label)
	case host == "":
		return label
	}
	return strings.Replace(label, host, m.all.Host(host), 1)
}

// Says returns what the name of a file says, without that name.
func (m *Maker) Says(path string) *naming.Name {
	n := naming.ParseFile(path)
	n.Host = m.all.Host(n.Host)
	if n.Run != "" {
		n.Run = m.all.Path(n.Run)
	}
	return &n
}

// Key returns what stands for the name of an attribute.
func (m *Maker) Key(key string) string { return m.cached("key", key, (*Maker).structural) }

// Attribute returns what stands for the value of an attribute, by its name.
func (m *Maker) Attribute(key, text string) string {
	return m.cached("attribute "+key, text, func(m *Maker, text string) string { return m.attribute(key, text) })
}

func (m *Maker) attribute(key, text string) string {
	switch key {
	case "service.name", "module", "thread_label":
		return m.structural(text)
	case "message": // why a request ended, as servers say it
		return m.all.Reason(text)
	case "rid":
		if strings.HasPrefix(text, "0x") { // a bootstrap room
			return text
		}
	}
	return m.all.Attribute(key, text)
}
