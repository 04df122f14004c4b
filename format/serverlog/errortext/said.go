package errortext

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
)

// ofRequests are parts of the names of files that handle the content of requests: their messages may quote it.
var ofRequests = []string{"serving", "protocol", "parser", "chat_utils", "logger.py", "async_llm", "tokeniz", "detokeniz", "http_server", "exception_handlers", "api_server", "renderer", "preprocess", "grammar", "structured_output"}

// Said returns a message without anything that it may quote, followed by its reason if that is known.
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

// unquotedOf returns the message without a reason: all of it, if it is from code that sees no prompts.
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
			if k := bytes.IndexAny(lower[i:], ":="); k >= 0 { // its value follows
				b = b[:i+k]
				lower = lower[:i+k]
			}
		}
	}
	return logline.Message(bytes.TrimRight(b, " :=(,.-"))
}

// reasons are texts in known reasons, with their meanings. Nothing else is kept: a server's response may quote a request.
var reasons = []struct{ text, says string }{
	{"out of memory", "out of memory"}, {"onnection refused", "connection refused"}, {"onnection reset", "connection reset"}, {"onnection closed", "connection closed"},
	{"imed out", "timed out"}, {"imeout", "timed out"}, {"deadline", "timed out"}, {"dns error", "its name is not found"}, {"No route to host", "no route to the host"},
	{"nreachable", "unreachable"}, {"roken pipe", "broken pipe"}, {"error trying to connect", "cannot connect"}, {"incomplete", "the answer broke off"},
}

// Reason returns why something failed, from the text after a sign in a message: a known reason, or an HTTP status; "" is
// unknown.
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

// IsErrorLevel reports whether a level is an error level.
func IsErrorLevel(level []byte) bool {
	return bytes.Contains(level, []byte("ERROR")) || bytes.Contains(level, []byte("CRITICAL")) || bytes.Contains(level, []byte("FATAL"))
}
