// Package redact decides what must not leave an incident with its timeline, and what replaces it.
//
// Readers drop prompts and answers, credentials, environments, and command lines, unless the user wants to
// keep them. Only text is dropped, at any depth: numbers and booleans reveal nothing. [SecretRules] go by
// the names of attributes, since a prompt looks like any other text. Credentials are also recognized by
// their shape, wherever they are: [Mask]. Whatever cannot be recognized stays, such as an NVTX range that
// an application names after a prompt.
//
// Names that reveal whose incident it is (hosts, requests, GPUs, paths, and addresses) and free text get
// pseudonyms if the user asks for that: from a [Redactor] in the program's output, and from a [Maker] in
// the rows of a dataset.
//
// A pseudonym is derived from the text and a key, by HMAC-SHA256: the same text has the same pseudonym
// everywhere, whatever it is part of, and in every run with the same key, and nobody can find the text by
// trying without the key. Pseudonyms show their kind: host-mzxw6ytboi, req-..., gpu-..., path-...,
// text-....
//
// A [Redactor] learns hosts, IDs, and files from the tables of the inputs. The names of tracks and events,
// messages, and the like are composed of these in many places; [Redactor.Scrub] finds everything learned in
// them, and everything that looks like a path, a URL, an address, or a random ID.
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

// A Redactor makes pseudonyms, called names here. It is safe for concurrent use.
type Redactor struct {
	key []byte

	mu   sync.RWMutex
	made map[string]bool // names made so far

	learned sync.RWMutex // guards the following fields
	files   words        // paths of inputs; kept texts map to themselves
	ids     words        // hosts and request IDs
}

// New returns a Redactor with a key; nil is a random key for this run only.
func New(key []byte) *Redactor {
	if key == nil {
		key = make([]byte, 32)
		rand.Read(key) // never fails
	}
	return &Redactor{key: key, made: map[string]bool{}, files: words{}, ids: words{}}
}

// apart returns a Redactor with the same key that has learned nothing.
func (r *Redactor) apart() *Redactor { return New(r.key) }

// Check returns a fingerprint of the key, from which the key cannot be found.
func (r *Redactor) Check() string { return hex.EncodeToString(r.digest("check", nil))[:32] }

// digest returns a 32-byte keyed digest of data of some kind.
func (r *Redactor) digest(kind string, data []byte) []byte {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(kind + "\x00"))
	mac.Write(data)
	return mac.Sum(nil)
}

// digits is the length of names: among a million texts, two have the same name with a probability of 1 in
// 2000.
const digits = 10

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// name returns the name of a text of some kind.
func (r *Redactor) name(kind, text string) string {
	if text == "" || r.isName(text) {
		return text
	}
	return r.make(kind + "-" + strings.ToLower(letters.EncodeToString(r.digest(kind, []byte(text))))[:digits])
}

// make returns a name, which r recognizes from now on.
func (r *Redactor) make(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made[name] = true
	return name
}

// isName reports whether a text is a name made by r.
func (r *Redactor) isName(text string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.made[text]
}

// Host returns the name of a host. "" and "?", the unknown hosts, stay. The domain has its own name, so
// that a host is recognized with and without its domain.
func (r *Redactor) Host(host string) string {
	if host == "?" || r.isName(host) {
		return host
	}
	short, domain, _ := strings.Cut(host, ".")
	if short == "" || domain == "" || strings.Trim(host, "0123456789.") == "" { // an IP address has no domain
		return r.name("host", host)
	}
	return r.make(r.name("host", short) + "." + r.name("domain", domain))
}

// Request returns the name of an ID: of a request, a trace, or a server instance.
func (r *Redactor) Request(id string) string { return r.name("req", id) }

// GPU returns the name of a GPU, by its UUID.
func (r *Redactor) GPU(uuid string) string { return r.name("gpu", uuid) }

// text returns the name of free text.
func (r *Redactor) text(text string) string { return r.name("text", text) }

// Path returns the name of a path, which keeps a known extension: "path-mzxw6ytboi.py".
func (r *Redactor) Path(path string) string {
	if r.isName(path) {
		return path
	}
	return r.make(r.name("path", path) + extension(path))
}

// extension returns the last extensions of a path, if they are known ones.
func extension(path string) string {
	base := path[strings.LastIndexAny(path, `/\`)+1:]
	loc := knownExtension.FindStringIndex(base)
	if loc == nil || loc[0] == 0 {
		return ""
	}
	return base[loc[0]:]
}

// LearnHost makes Scrub replace a host name, with and without its domain, and the shown prefix of a long
// ID. A host named after its function cannot be distinguished from other text.
func (r *Redactor) LearnHost(host string) {
	if len(host) < 3 || plainHosts[strings.ToLower(host)] {
		return
	}
	r.learn(host, r.Host(host))
	if short, domain, _ := strings.Cut(host, "."); domain != "" && len(short) >= 3 && strings.ContainsAny(short, "0123456789") &&
		strings.Trim(short, "0123456789") != "" {
		r.learn(short, r.Host(short))
	}
	if len(host) > shortID && strings.Trim(host, "0123456789abcdefABCDEF") == "" { // an ID, of which eight digits are shown
		r.learn(host[:shortID], r.Host(host))
	}
}

// plainHosts are names of hosts, as given to containers, that are also words in traces.
var plainHosts = map[string]bool{"bootstrap": true, "decode": true, "decoder": true, "encoder": true, "engine": true, "gateway": true, "host": true,
	"localhost": true, "mooncake": true, "node": true, "prefill": true, "req": true, "request": true, "router": true, "scheduler": true, "server": true,
	"sglang": true, "tokenizer": true, "vllm": true, "worker": true}

// shortID is the number of characters of an ID that are shown where there is little room.
const shortID = 8

// LearnRequest makes Scrub replace a request ID. Short IDs and words cannot be distinguished from other
// text.
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

// LearnFile makes Scrub replace the name of an input, with and without its directory, and without
// extensions. A file named after a host keeps the host's name.
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

// plainStems are names of files that are also words in messages.
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

// A Writer redacts the lines written to it, in case a caller forgot to.
type Writer struct {
	W    io.Writer // receives the redacted lines
	By   *Redactor
	line []byte // the incomplete line
}

// Write holds back the end of p until its line is complete. A carriage return also ends a line: progress is
// shown on a line that otherwise never ends.
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

// Flush writes the last line if it is incomplete.
func (w *Writer) Flush() error {
	_, err := io.WriteString(w.W, w.By.Scrub(string(w.line)))
	w.line = nil
	return err
}

// Fd returns the file descriptor of the underlying writer, so that a terminal is recognized.
func (w *Writer) Fd() uintptr {
	if f, ok := w.W.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}
