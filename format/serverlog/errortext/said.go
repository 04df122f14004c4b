package errortext

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
)

// ofRequests are in the names of files that handle what requests contain: their messages may quote it.
var ofRequests = []string{"serving", "protocol", "parser", "chat_utils", "logger.py", "async_llm", "tokeniz", "detokeniz", "http_server", "exception_handlers", "api_server", "renderer", "preprocess", "grammar", "structured_output"}

// Said returns what a message says, without what it may quote, but for a reason that people know.
func Said(b []byte, source string) string {
	text := unquotedOf(b, source)
	lower := strings.ToLower(text)
	for _, x := range reasons {
		if text != "" && bytes.Contains(b, []byte(x.text)) && !strings.Contains(lower, strings.ToLower(x.text)) && !strings.Contains(lower, x.says) {
			return text + ": " + x.says
		}
	}
	return text
}

// unquotedOf is that without a reason: all of it, if it is from code that knows no prompts.
func unquotedOf(b []byte, source string) string {
	if source != "" && !slices.ContainsFunc(ofRequests, func(of string) bool { return strings.Contains(source, of) }) {
		return logline.Message(b)
	}
	if i := bytes.IndexAny(b, "\"'`{[<"); i >= 0 {
		b = b[:i]
	}
	lower := bytes.ToLower(b)
	for _, word := range [...]string{"prompt", "text", "input", "content", "message", "request", "body", "payload", "output", "response", "arguments"} {
		if i := bytes.Index(lower, []byte(word)); i >= 0 {
			if k := bytes.IndexAny(lower[i:], ":="); k >= 0 { // what follows is its value
				b = b[:i+k]
				lower = lower[:i+k]
			}
		}
	}
	return logline.Message(bytes.TrimRight(b, " :=(,.-"))
}

// reasons are what stands in reasons that people know, and what it means. Nothing else of them is kept: an
// answer of a server may quote a request.
var reasons = []struct{ text, says string }{
	{"out of memory", "out of memory"}, {"onnection refused", "connection refused"}, {"onnection reset", "connection reset"}, {"onnection closed", "connection closed"},
	{"imed out", "timed out"}, {"imeout", "timed out"}, {"deadline", "timed out"}, {"dns error", "its name is not found"}, {"No route to host", "no route to the host"},
	{"nreachable", "unreachable"}, {"roken pipe", "broken pipe"}, {"error trying to connect", "cannot connect"}, {"incomplete", "the answer broke off"},
}

// Reason returns why something failed, by what stands behind a sign in a message: a reason that people know, or a status of HTTP; "" is not known.
func Reason(message []byte, sign string) string {
	rest := message[bytes.Index(message, []byte(sign))+len(sign):]
	for _, x := range reasons {
		if bytes.Contains(rest, []byte(x.text)) {
			return x.says
		}
	}
	if i := bytes.Index(rest, []byte("status")); i >= 0 {
		rest = rest[i:]
	}
	for i := range rest { // "status: 503 Service Unavailable", "http://w:1: 503"
		if n, ok := logline.Digits(rest[i:], 3); ok && n >= 400 && n < 600 && (i == 0 || rest[i-1] == ' ' || rest[i-1] == '=') && (i+3 == len(rest) || rest[i+3] == ' ' || rest[i+3] == ',') {
			return "HTTP status " + string(rest[i:i+3])
		}
	}
	return ""
}

// IsErrorLevel reports whether a level is that of an error.
func IsErrorLevel(level []byte) bool {
	return bytes.Contains(level, []byte("ERROR")) || bytes.Contains(level, []byte("CRITICAL")) || bytes.Contains(level, []byte("FATAL"))
}
