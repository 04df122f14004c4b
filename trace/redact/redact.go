// Package redact knows what must not leave an incident with its timeline, and what stands for it.
//
// Prompts and answers, credentials, environments and command lines are left out by readers, unless
// the user wants them. Only texts are, at any depth: numbers and booleans reveal nothing.
// [SecretRules] go by the names of attributes, since a prompt looks like any other text. Credentials
// are known by their looks, too, wherever they are: [Mask]. What nobody can know, such as an NVTX
// range that an application calls by a prompt, stays.
//
// Names that reveal whose incident it is, of hosts, requests, GPUs, paths and addresses, and free
// text get pseudonyms if the user wants that: by a [Redactor] in what the program writes, by a
// [Maker] in the rows of a dataset.
//
// A pseudonym is made of the text that it stands for and a key, by HMAC-SHA256: the same
// text has the same pseudonym everywhere, whatever it is part of and in every run with the
// same key, and nobody without the key can find the text by trying. Pseudonyms tell their
// kind: host-mzxw6ytboi, req-..., gpu-..., path-..., text-....
//
// A [Redactor] learns hosts, ids and files from the tables of what was read. Names of
// tracks and events, messages and the like are put together from these in many places;
// [Redactor.Scrub] finds in them what was learned, and what looks like a path, a URL, an
// address or a random id.
package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"io"
	"path/filepath"
	"strings"
	"sync"
)

// A Redactor gives names. It is safe for concurrent use.
type Redactor struct {
	key []byte

	mu   sync.RWMutex
	made map[string]bool // names that were given

	learned sync.RWMutex // guards what follows
	files   words        // paths of inputs; kept ones as they are
	ids     words        // hosts and ids of requests
}

// New returns a Redactor with a key; nil is a random one, of this run alone.
func New(key []byte) *Redactor {
	if key == nil {
		key = make([]byte, 32)
		rand.Read(key) // never fails
	}
	return &Redactor{key: key, made: map[string]bool{}, files: words{}, ids: words{}}
}

// apart returns a Redactor with the same key that has learned nothing.
func (r *Redactor) apart() *Redactor { return New(r.key) }

// Check is equal for Redactors with the same key, which nobody can find by it.
func (r *Redactor) Check() string { return hex.EncodeToString(r.digest("check", nil))[:32] }

// digest returns 32 bytes that stand for others of some kind.
func (r *Redactor) digest(kind string, data []byte) []byte {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(kind + "\x00"))
	mac.Write(data)
	return mac.Sum(nil)
}

// digits is how long names are: of a million texts, two have the same name with a
// probability of 1 in 2000.
const digits = 10

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// name returns the name of a text of some kind.
func (r *Redactor) name(kind, text string) string {
	if text == "" || r.isName(text) {
		return text
	}
	name := kind + "-" + strings.ToLower(letters.EncodeToString(r.digest(kind, []byte(text))))[:digits]
	r.mu.Lock()
	r.made[name] = true
	r.mu.Unlock()
	return name
}

// isName reports whether a text is a name that was given.
func (r *Redactor) isName(text string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.made[text]
}

// Host returns the name of a host. "" and "?", which are unknown hosts, stay. A domain has a name
// of its own, so that a host with its domain is still recognized as the one without.
func (r *Redactor) Host(host string) string {
	if host == "?" || r.isName(host) {
		return host
	}
	short, domain, _ := strings.Cut(host, ".")
	if short == "" || domain == "" || strings.Trim(host, "0123456789.") == "" { // an address has no domain
		return r.name("host", host)
	}
	name := r.name("host", short) + "." + r.name("domain", domain)
	r.mu.Lock()
	r.made[name] = true
	r.mu.Unlock()
	return name
}

// Request returns the name of an id: of a request, a trace, an instance of a server.
func (r *Redactor) Request(id string) string { return r.name("req", id) }

// GPU returns the name of a GPU, by its UUID.
func (r *Redactor) GPU(uuid string) string { return r.name("gpu", uuid) }

// text returns the name of free text.
func (r *Redactor) text(text string) string { return r.name("text", text) }

// Path returns the name of a path, which keeps what tells its kind: "path-mzxw6ytboi.py".
func (r *Redactor) Path(path string) string {
	if r.isName(path) {
		return path
	}
	name := r.name("path", path) + extension(path)
	r.mu.Lock()
	r.made[name] = true
	r.mu.Unlock()
	return name
}

// extension returns the last one or two extensions of a path, if they are usual ones.
func extension(path string) string {
	base := path[strings.LastIndexAny(path, `/\`)+1:]
	loc := knownExtension.FindStringIndex(base)
	if loc == nil || loc[0] == 0 {
		return ""
	}
	return base[loc[0]:]
}

// LearnHost makes Scrub replace a host name, too, with and without its domain, and what of a
// long id is printed. A host that is called by what it does cannot be told from other text.
func (r *Redactor) LearnHost(host string) {
	if len(host) < 3 || plainHosts[strings.ToLower(host)] {
		return
	}
	r.learn(host, r.Host(host))
	if short, domain, _ := strings.Cut(host, "."); domain != "" && len(short) >= 3 && strings.ContainsAny(short, "0123456789") &&
		strings.Trim(short, "0123456789") != "" {
		r.learn(short, r.Host(short))
	}
	if len(host) > shortID && strings.Trim(host, "0123456789abcdefABCDEF") == "" { // an id, of which eight digits are printed
		r.learn(host[:shortID], r.Host(host))
	}
}

// plainHosts are names of hosts, as containers have them, that are words of traces, too.
var plainHosts = map[string]bool{"bootstrap": true, "decode": true, "decoder": true, "encoder": true, "engine": true, "gateway": true, "host": true,
	"localhost": true, "mooncake": true, "node": true, "prefill": true, "req": true, "request": true, "router": true, "scheduler": true, "server": true,
	"sglang": true, "tokenizer": true, "vllm": true, "worker": true}

// shortID is how many characters of an id are printed where there is little room.
const shortID = 8

// LearnRequest makes Scrub replace an id of a request, too. Short ids and words are no
// ids that could be told from other text.
func (r *Redactor) LearnRequest(id string) {
	if len(id) < 6 || !strings.ContainsAny(id, "0123456789") {
		return
	}
	name := r.Request(id)
	r.learn(id, name)
	if len(id) > shortID+4 && isWord(id[shortID-1]) && strings.ContainsAny(id[:shortID], "0123456789") {
		r.learn(id[:shortID], name[:shortID])
	}
}

// LearnFile makes Scrub replace the name of an input, with its directory, without it,
// and without extensions. Files that are called by a host are called by it still.
func (r *Redactor) LearnFile(path string) {
	base := filepath.Base(path)
	stem, _, _ := strings.Cut(base, ".")
	name := r.Path(path)
	bare, _, _ := strings.Cut(name, ".")
	r.learned.Lock()
	defer r.learned.Unlock()
	r.files.add(path, name)
	r.files.add(base, name)
	if _, isHost := r.ids.find(stem); !isHost && len(stem) >= 4 && !plainStems[stem] {
		r.ids.add(stem, bare)
	}
}

// plainStems are names of files that are words of messages, too.
var plainStems = map[string]bool{"trace": true, "traces": true, "otel": true, "otlp": true, "torch": true, "nsys": true, "node": true,
	"host": true, "rank": true, "requests": true, "spans": true, "profile": true, "merged": true, "report": true, "export": true, "dump": true,
	"input": true, "standard": true}

// Keep makes Scrub leave a text alone: the name of an output, which the user gave.
func (r *Redactor) Keep(text string) {
	r.learned.Lock()
	defer r.learned.Unlock()
	r.files.add(text, text)
}

func (r *Redactor) learn(text, name string) {
	r.learned.Lock()
	defer r.learned.Unlock()
	r.ids.add(text, name)
}

// A Writer redacts the lines that are written to it, whoever forgot to.
type Writer struct {
	W    io.Writer // gets the redacted lines
	By   *Redactor
	line []byte // that is not complete
}

// Write keeps the end of p until its line is complete. A carriage return ends one, too: what a
// run is doing stands on a line that never ends otherwise.
func (w *Writer) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	end := bytes.LastIndexAny(w.line, "\r\n") + 1
	if end == 0 {
		return len(p), nil
	}
	_, err := io.WriteString(w.W, w.By.Scrub(string(w.line[:end])))
	w.line = append(w.line[:0], w.line[end:]...)
	return len(p), err
}

// Flush writes the last line, if it has no end.
func (w *Writer) Flush() error {
	_, err := io.WriteString(w.W, w.By.Scrub(string(w.line)))
	w.line = nil
	return err
}

// Fd returns that of the writer below, so that a terminal is known as one.
func (w *Writer) Fd() uintptr {
	if f, ok := w.W.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}
