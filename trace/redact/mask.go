package redact

import (
	"strings"
	"unicode"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// Masked replaces a credential.
const Masked = "[secret]"

// A credentialShape is a pattern of credentials. The last group of the pattern is masked.
type credentialShape struct {
	pattern *lazyregexp.Regexp
	random  bool // require a letter and a digit
}

// secretName matches the end of names of credentials in text.
const secretName = `(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?key)?|private[_-]?key|password|passwd|passphrase|credentials?|token|authorization|cookie|jwt)`

// credentialShapes are in the order of the constants of type set.
var credentialShapes = []credentialShape{
	// --api-key X, api_key=X, "api_key": "X", X-Api-Key: X, ?token=X, but not C++'s token::X
	{lazyregexp.New(`(?i)` + secretName + `["']?\s*[=:]\s*["']?((?:(?:bearer|basic|token)\s+)?[^\s"'&;,)}\]\[:=][^\s"'&;,)}\]]*)`), false},
	{lazyregexp.New(`(?i)--[a-z-]*` + secretName + `\s+["']?([^\s"'-][^\s"']*)`), false},
	{lazyregexp.New(`(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{8,})`), true},
	{lazyregexp.New(`(?i)\bbasic\s+([A-Za-z0-9+/=]{12,})`), true},
	{lazyregexp.New(`(?i)[?&](?:key|sig|signature|auth|code|pwd|pass)=([^\s"'&#]+)`), false},
	{lazyregexp.New(`://[^\s/:@"']*:([^\s/@"']+)@`), false},
	// Prefixes of services' keys.
	{lazyregexp.New(`\b((?:sk-|sk_live_|sk_test_|nvapi-|glpat-|github_pat_|xai-)[A-Za-z0-9_-]{16,})`), true},
	{lazyregexp.New(`\b((?:hf_|gh[pousr]_|gsk_)[A-Za-z0-9]{20,})`), false},
	{lazyregexp.New(`\b(xox[abprs]-[A-Za-z0-9-]{10,})`), true},
	{lazyregexp.New(`\b((?:AKIA|ASIA)[A-Z0-9]{16})\b`), true},
	{lazyregexp.New(`\b(AIza[A-Za-z0-9_-]{35})`), true},
	{lazyregexp.New(`\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`), false}, // JSON Web Token
	{lazyregexp.New(`-----BEGIN [A-Z ]*PRIVATE KEY-----([^"']+)`), false},
}

// A hint is lowercase text that every match of some shapes contains.
type hint struct {
	text   string
	next   string // bytes, one of which must follow; "" is any
	shapes set
}

// A set is a bit set of shapes, by index.
type set uint16

const (
	assigned set = 1 << iota // a name and a value assigned to it
	option                   // a command-line option and its value
	bearer
	basic
	query
	address // with an @ somewhere after it
	service
	account
	slack
	aws
	google
	webToken
	privateKey
)

// names are the possible ends of secretName.
const names = "secret password passwd passphrase credential credentials token authorization cookie jwt" +
	" apikey api_key api-key secretkey secret_key secret-key privatekey private_key private-key" +
	" accesskey access_key access-key accesskeyid accesskey_id accesskey-id" +
	" access_keyid access_key_id access_key-id access-keyid access-key_id access-key-id"

// hints has the hints by their first two bytes: see [pair].
var hints = func() (byPair [1 << 10][]hint) {
	const blank = " \t\r\n\v\f"
	for _, group := range []struct {
		texts, next string
		shapes      set
	}{
		{names, "\"'=:" + blank, assigned | option},
		{"bearer", blank, bearer},
		{"basic", blank, basic},
		{"?key ?sig ?signature ?auth ?code ?pwd ?pass &key &sig &signature &auth &code &pwd &pass", "=", query},
		{"sk- sk_live_ sk_test_ nvapi- glpat- github_pat_ xai-", "", service},
		{"hf_ ghp_ gho_ ghu_ ghs_ ghr_ gsk_", "", account},
		{"xoxa- xoxb- xoxp- xoxr- xoxs-", "", slack},
		{"akia asia", "", aws},
		{"aiza", "", google},
		{"eyj", "", webToken},
		{"://", "", address},
		{"key--", "-", privateKey}, // -----BEGIN PRIVATE KEY-----
	} {
		for text := range strings.FieldsSeq(group.texts) {
			byPair[pair(text[0], text[1])] = append(byPair[pair(text[0], text[1])], hint{text, group.next, group.shapes})
		}
	}
	return byPair
}()

// pair returns a hash of two bytes that ignores case.
func pair(a, b byte) int { return int(a&31)<<5 | int(b&31) }

// candidates returns the shapes that a text may match, quickly: most texts match none.
func candidates[text string | []byte](t text) (found set) {
	for i := 0; i+1 < len(t); i++ {
		for _, h := range hints[pair(t[i], t[i+1])] {
			end := i + len(h.text)
			if h.shapes&^found == 0 || end > len(t) || !strings.EqualFold(string(t[i:end]), h.text) ||
				h.next != "" && (end == len(t) || strings.IndexByte(h.next, t[end]) < 0) {
				continue
			}
			could := h.shapes
			if could&assigned != 0 && !isAssigned(t, end) {
				could &^= assigned
			}
			if could&option != 0 && !isOption(t, i) {
				could &^= option
			}
			if could&address != 0 && !hasAt(t, end) {
				could &^= address
			}
			found |= could
		}
	}
	return found
}

// hasAt reports whether there is an @ at or after t[i]: most addresses have no password before one.
func hasAt[text string | []byte](t text, i int) bool {
	for ; i < len(t); i++ {
		if t[i] == '@' {
			return true
		}
	}
	return false
}

// isAssigned reports whether a value may be assigned to the name that ends at t[i].
func isAssigned[text string | []byte](t text, i int) bool {
	if i < len(t) && (t[i] == '"' || t[i] == '\'') {
		i++
	}
	for i < len(t) && (t[i] == ' ' || '\t' <= t[i] && t[i] <= '\r') {
		i++
	}
	return i < len(t) && (t[i] == '=' || t[i] == ':')
}

// isOption reports whether the name that begins at t[i] may be the end of an option's name.
func isOption[text string | []byte](t text, i int) bool {
	for i--; i >= 0; i-- {
		switch c := t[i]; {
		case c == '-' && i > 0 && t[i-1] == '-':
			return true
		case c != '-' && c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && c < 0x80: // beyond ASCII, some characters fold to letters
			return false
		}
	}
	return false
}

// longest is the maximum length, in bytes, of texts that are searched: no name is longer, and a longer
// argument that may have a credential is dropped.
const longest = 1 << 16

// Mask replaces everything that looks like a credential in a text with [Masked]: keys of services, bearer
// tokens, passwords in URLs, and values of options and assignments with telling names. It is idempotent.
func Mask(text string) string {
	which := candidates(text)
	switch {
	case which == 0:
		return text
	case len(text) > longest:
		return Masked
	}
	for i := range credentialShapes {
		if which&(1<<i) != 0 {
			text = credentialShapes[i].mask(text)
		}
	}
	return text
}

func (s *credentialShape) mask(text string) string {
	var out strings.Builder
	done := 0
	for _, m := range s.pattern.FindAllStringSubmatchIndex(text, -1) {
		from, to := m[len(m)-2], m[len(m)-1]
		if !s.is(text[from:to]) {
			continue
		}
		out.WriteString(text[done:from])
		out.WriteString(Masked)
		done = to
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// is reports whether a text of this shape is a credential, rather than a number, a word for none, or
// already masked.
func (s *credentialShape) is(text string) bool {
	switch strings.ToLower(text) {
	case "none", "null", "true", "false", "nil", "", Masked:
		return false
	}
	letter, digit := strings.ContainsFunc(text, unicode.IsLetter), strings.ContainsFunc(text, unicode.IsDigit)
	return letter && digit || !s.random && (letter || len(text) > 8)
}

// hasCredential reports whether a text contains something that looks like a credential.
func hasCredential(text string) bool { return Mask(text) != text }
