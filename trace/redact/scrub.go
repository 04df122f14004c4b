package redact

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A shape is a pattern of texts to replace.
type shape struct {
	pattern string
	name    func(r *Redactor, text string) string
}

// extensions are the extensions of files in traces, by which a name without a directory is recognized as a
// file.
const extensions = `py|pyc|pyx|pyi|so|cc|cpp|cxx|cu|cuh|hpp|cubin|ptx|sh|json|jsonl|ndjson|yaml|yml|toml|txt|csv|pt|pth|safetensors|gguf|gz|zst|sqlite|nsys-rep|qdrep|pftrace`

var knownExtension = lazyregexp.New(`(?:\.(?:` + extensions + `))+(?:\.[0-9]+)*$`)

// shapes are tried together; of two that match at the same position, the first wins.
var shapes = []shape{
	{`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>|\\]+`, func(r *Redactor, s string) string { return r.name("url", s) }},
	{`[a-zA-Z0-9._%+-]+@[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+`, (*Redactor).text},
	// A random ID: a UUID, or the same number of digits without hyphens.
	{`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`, (*Redactor).Request},
	{`\b[0-9a-fA-F]{32}(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{32})?\b`, (*Redactor).Request},
	{`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`, (*Redactor).Host},
	{`\b(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}\b|\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){1,5}::[0-9a-fA-F]{1,4}\b`, (*Redactor).Host},
	// Windows and Unix paths, absolute or to a file with a known extension.
	{`\b[a-zA-Z]:\\[^\s"'<>|:]+|\\\\[^\s"'<>|:]+`, (*Redactor).Path},
	{`(?:~|\.{1,2})?/[^\s"'<>(),:;|=?]+\?[^\s"'<>]+`, (*Redactor).queried},
	{`(?:~|\.{1,2})?/[^\s"'<>(),:;|=]+`, (*Redactor).absolute},
	{`(?:[\w.@%+~-]+[/\\])*[\w@%+~.-]*[\w@%+~-]\.(?:` + extensions + `)(?:\.[0-9]+)*\b`, (*Redactor).Path},
}

var anyShape = lazyregexp.New(strings.Join(order.Each(shapes, func(s shape) string { return "(" + s.pattern + ")" }), "|"))

// routes matches the routes of an HTTP server, which are not files.
var routes = lazyregexp.New(`^/(?:v[0-9]+/|(?:generate|encode|classify|health|health_generate|get_\w+|metrics|flush_cache|start_profile|stop_profile|inference/|workers|readiness|liveness)\b)`)

// absolute replaces a path, unless it is a route or a unit: 12 /s.
func (r *Redactor) absolute(path string) string {
	if routes.MatchString(path) || !strings.ContainsFunc(path, unicode.IsLetter) || path[0] == '/' && len(strings.TrimRight(path, ".")) == 2 {
		return path
	}
	return r.Path(path)
}

// queried replaces a path and its query.
func (r *Redactor) queried(path string) string {
	route, query, _ := strings.Cut(path, "?")
	return r.absolute(route) + "?" + r.text(query)
}

// Scrub replaces everything in a text that was learned, and everything that looks like a path, a URL, an
// email or network address, or a random ID. The rest stays.
func (r *Redactor) Scrub(text string) string {
	if text == "" || r.isName(text) {
		return text
	}
	r.learned.RLock()
	defer r.learned.RUnlock()
	asIs := func(s string) string { return s }
	return r.files.replace(text, func(s string) string {
		return r.scrubShapes(s, func(s string) string { return r.ids.replace(s, asIs) })
	})
}

// scrubShapes replaces everything recognized by its shape, and applies between to the text in between. A
// slash in the middle of a word does not begin a path: Tokens/s.
func (r *Redactor) scrubShapes(s string, between func(string) string) string {
	if !strings.ContainsAny(s, `./\@-:`) && len(s) < 32 {
		return between(s)
	}
	var out strings.Builder
	done := 0
	for done < len(s) {
		m := anyShape.FindStringSubmatchIndex(s[done:])
		if m == nil {
			break
		}
		from, to := done+m[0], done+m[1]
		if s[from] == '/' && from > 0 && isWord(s[from-1]) {
			out.WriteString(between(s[done:to]))
			done = to
			continue
		}
		for k, shape := range shapes {
			if m[2*k+2] >= 0 {
				out.WriteString(between(s[done:from]))
				name, learned := r.ids.find(s[from:to])
				if !learned {
					name = shape.name(r, s[from:to])
				}
				out.WriteString(name)
			}
		}
		done = to
	}
	out.WriteString(between(s[done:]))
	return out.String()
}

// words are texts to find in other texts, by their first run of letters and digits. A text is found only
// where it is not part of a longer word.
type words map[string]*sharing

// sharing are texts with the same first run, such as IDs of one producer.
type sharing struct {
	forms []form // longest first
	names map[string]string
}

// A form is the shape of a text around its first run: texts of one form are looked up together.
type form struct {
	lead, length int // bytes before the run, and in total
}

// isWord reports whether a byte is part of a word. Non-ASCII bytes are.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// firstWord returns the bounds of the first word in s at or after i.
func firstWord(s string, i int) (from, to int) {
	for from = i; from < len(s) && !isWord(s[from]); from++ {
	}
	for to = from; to < len(s) && isWord(s[to]); to++ {
	}
	return from, to
}

// add makes text be found. The last name added for a text counts.
func (w words) add(text, name string) {
	from, to := firstWord(text, 0)
	if from == to {
		return
	}
	x := order.Memo(w, text[from:to], func() *sharing { return &sharing{names: map[string]string{}} })
	x.names[text] = name
	f := form{from, len(text)}
	if !slices.Contains(x.forms, f) {
		at, _ := slices.BinarySearchFunc(x.forms, f.length, func(x form, n int) int { return n - x.length })
		x.forms = slices.Insert(x.forms, at, f)
	}
}

// find returns the name for a whole text, if it has one.
func (w words) find(text string) (name string, ok bool) {
	from, to := firstWord(text, 0)
	if x := w[text[from:to]]; x != nil {
		name, ok = x.names[text]
	}
	return name, ok
}

// at returns the name for the longest text in s whose first run is s[from:to], and its bounds; it does not
// begin before done.
func (w words) at(s string, done, from, to int) (name string, start, end int, ok bool) {
	x := w[s[from:to]]
	if x == nil {
		return "", 0, 0, false
	}
	for _, f := range x.forms {
		start, end = from-f.lead, from-f.lead+f.length
		if start < done || end > len(s) || end < len(s) && isWord(s[end]) && isWord(s[end-1]) {
			continue
		}
		if name, ok = x.names[s[start:end]]; ok {
			return name, start, end, true
		}
	}
	return "", 0, 0, false
}

// replace replaces the texts found in s, and applies between to the text in between.
func (w words) replace(s string, between func(string) string) string {
	var out strings.Builder
	done := 0
	for i := 0; i < len(s); {
		from, to := firstWord(s, i)
		i = to
		name, start, end, ok := w.at(s, done, from, to)
		if !ok {
			continue
		}
		out.WriteString(between(s[done:start]))
		out.WriteString(name)
		done, i = end, end
	}
	if done == 0 {
		return between(s)
	}
	out.WriteString(between(s[done:]))
	return out.String()
}
