package redact

import (
	"encoding/hex"
	"strings"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Maker makes the pseudonyms of one input, for the rows of a dataset. Code that reads these makes the
// same decisions as with the original names: equal names have equal pseudonyms, so that parts of requests,
// hosts, and ranks can still be distinguished and joined, and the names of spans, threads, and services,
// from which requests are assembled, are kept. The pseudonym of a text depends on the key, and on the hosts
// and IDs in the input itself. A Maker is for one goroutine.
type Maker struct {
	all *Redactor // knows hosts, IDs, and files
	ids *Redactor // knows IDs, for texts that identify a span: a host may have the name of a service
	// known caches pseudonyms by kind: many rows have the same texts.
	known   map[string]map[string]string
	columns columns
}

// NewMaker returns a Maker with the key of a Redactor.
func NewMaker(by *Redactor) *Maker {
	return &Maker{all: by.apart(), ids: by.apart(), known: map[string]map[string]string{}, columns: columns{}}
}

// LearnHost makes the Maker replace a host wherever it is part of a text.
func (m *Maker) LearnHost(host string) { m.all.LearnHost(host) }

// LearnFile makes the Maker replace the path of a file, and the host in its name, wherever they are part of
// a text.
func (m *Maker) LearnFile(path string) {
	m.all.LearnHost(naming.ParseFile(path).Host)
	m.all.LearnFile(path)
}

// LearnLabel makes the Maker replace the host of a label wherever it is part of a text.
func (m *Maker) LearnLabel(label string) {
	if host, _, err := naming.ParseLabel(label); err == nil {
		m.all.LearnHost(host)
	}
}

// LearnAttribute makes the Maker replace the value of an attribute wherever it is part of a text, if it is a host or an ID.
func (m *Maker) LearnAttribute(key, text string) {
	m.all.learnAttribute(key, text)
	if !hostKeys.MatchString(key) {
		m.ids.learnAttribute(key, text)
	}
}

// hostKeys matches attributes that name hosts.
var hostKeys = lazyregexp.New(`host|node|pod|peer|address`)

// A rule makes the pseudonym of a text.
type rule func(m *Maker, text string) string

// rules say how columns are redacted, by the redact tag of the row's fields. Untagged columns are text that
// is searched for names.
var rules = map[string]rule{
	"":           func(m *Maker, text string) string { return m.all.Scrub(text) },
	"own":        func(_ *Maker, text string) string { return text }, // one of our own words, or already a pseudonym
	"host":       func(m *Maker, text string) string { return m.all.Host(text) },
	"request":    func(m *Maker, text string) string { return m.all.Request(text) },
	"structural": (*Maker).structural,
	"span":       (*Maker).span,
	"trace":      (*Maker).trace,
	"json":       func(m *Maker, text string) string { return m.json(text) },
}

// structural makes the pseudonym of a text that says what a span is.
func (m *Maker) structural(text string) string { return m.ids.Scrub(text) }

// maxKept is the maximum number of pseudonyms cached per kind.
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

// requestName matches names of spans that end with the beginning of an ID: "decode Req 7ca07386", but not
// with a bootstrap room.
var requestName = lazyregexp.New(`^(.*[Rr]eq )([^0].*|0[^x].*)$`)

// span makes the pseudonym of a span name.
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

// shownID is the length of IDs in names of spans.
const shownID = 8

// trace makes the pseudonym of a trace ID: 32 hexadecimal digits. A zero ID stays zero.
func (m *Maker) trace(id string) string {
	if strings.Trim(id, "0") == "" {
		return id
	}
	return hex.EncodeToString(m.all.digest("trace", []byte(id))[:16])
}

// Hash makes a hash that cannot be compared with the hash of a file.
func (m *Maker) Hash(hash string) string {
	return hex.EncodeToString(m.all.digest("hash", []byte(hash)))
}

// Text makes the pseudonym of a text, all of which is hidden.
func (m *Maker) Text(text string) string { return m.all.text(text) }

// Scrub replaces everything that it finds in a text.
func (m *Maker) Scrub(text string) string { return m.all.Scrub(text) }

// Path makes the pseudonym of a path.
func (m *Maker) Path(path string) string { return m.all.Path(path) }

// Label makes the pseudonym of a label, which keeps its rank. An invalid label is treated as free text.
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

// Says returns the information in the name of a file, redacted.
func (m *Maker) Says(path string) *naming.Name {
	n := naming.ParseFile(path)
	n.Host = m.all.Host(n.Host)
	if n.Run != "" {
		n.Run = m.all.Path(n.Run)
	}
	return &n
}

// Key returns the pseudonym of an attribute's name.
func (m *Maker) Key(key string) string { return m.cached("key", key, (*Maker).structural) }

// Attribute returns the pseudonym of an attribute's value, which depends on its name.
func (m *Maker) Attribute(key, text string) string {
	return m.cached("attribute "+key, text, func(m *Maker, text string) string { return m.attribute(key, text) })
}

func (m *Maker) attribute(key, text string) string {
	switch key {
	case "service.name", "module", "thread_label":
		return m.structural(text)
	case "message": // why a request ended, as reported by servers
		return m.all.Reason(text)
	case "rid":
		if strings.HasPrefix(text, "0x") { // a bootstrap room
			return text
		}
	}
	return m.all.Attribute(key, text)
}
