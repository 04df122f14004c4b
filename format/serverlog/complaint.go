package serverlog

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A complaint is a line that its program calls an error, or of trouble that it warns of, in words that nothing here knows.
type complaint struct {
	x    series.Instant
	text string
	mild bool // it only warns
}

// complaints are those of a log: lines that differ in digits only are one.
type complaints struct {
	list   []complaint
	shapes map[string]int // indexes into list
	before int            // instants of other inputs
}

func newComplaints(set *series.Set) complaints {
	return complaints{shapes: map[string]int{}, before: len(set.Instants)}
}

// add keeps a complaint, and reports whether it did.
func (c *complaints) add(text string, x series.Instant, mild bool) bool {
	if text == "" {
		return false
	}
	shape := shapeOf(text)
	k, ok := c.shapes[shape]
	if !ok {
		if len(c.list) == mostComplaints {
			return false
		}
		k = len(c.list)
		c.shapes[shape] = k
		x.Kind = series.Complaint
		c.list = append(c.list, complaint{x: x, text: text, mild: mild})
	}
	c.list[k].x.Count++
	return true
}

// tell adds what a log complains of. Of warnings, only where it tells of nothing else: most programs warn of something when all is well.
func (c *complaints) tell(f *series.Filler) {
	others := len(f.Set.Instants) > c.before || slices.ContainsFunc(c.list, func(x complaint) bool { return !x.mild })
	for i := range c.list {
		says := "an error: "
		if c.list[i].mild {
			if others {
				continue
			}
			says = series.Warns
		}
		f.Line(int64(c.list[i].x.Line))
		f.Instant(c.list[i].x, says+c.list[i].text)
	}
}

// dumped is the source in which vLLM prints what it had scheduled when its engine failed.
const dumped = "dump_input.py"

// mostComplaints is how many shapes of complaints of a log are told apart: what comes behind them follows from these.
const mostComplaints = 64

// complain keeps a line that its program calls an error, and reports whether it did. What source names is the file or module that wrote it;
// "" is not told.
func (r *reader) complain(b []byte, at trace.Time, place int32, source string) bool {
	return r.isWhole(b, source) && r.complaints.add(saidBy(b, source), series.Instant{Time: at, Place: place, Line: uint32(r.line)}, false)
}

// isWhole reports whether a line is not a piece of what stood before, or how that ends.
func (r *reader) isWhole(b []byte, source string) bool {
	return len(b) > 0 && !strings.Contains(source, dumped) && b[0] != ' ' && b[0] != '\t' && !r.stopping && soundsWorse.in(b) == 0 && !slices.ContainsFunc(continues, func(text string) bool { return bytes.HasPrefix(b, []byte(text)) })
}

// happened are pieces of words that say that something went wrong, and not that it might, or what is done then.
var happened = newWordSet("ailed", "efused", "imed out", "xception", "rashed", "isconnected", "orrupted", "illed", "borted", "roken", "nreachable", "navailable", "xpired", "anicked")

// unknownOf reads a line of a level that [reader.unknown] passes over: a warning of trouble is kept.
func (r *reader) unknownOf(level, b []byte, at trace.Time, place int32, source string) {
	if b := b[:min(len(b), lookedAt)]; bytes.HasPrefix(level, []byte("WARN")) && happened.in(b) != 0 && r.isWhole(b, source) {
		r.complaints.add(saidBy(b, source), series.Instant{Time: at, Place: place, Line: uint32(r.line)}, true)
	}
	r.unknown(b)
}

// continues are how lines begin that go on with a traceback, or lead to one.
var continues = []string{"The above exception was ", "During handling of the above ", "Traceback (most recent call last)", "+ Exception Group", "| ", "frame #", "Exception raised from "}

// shapeOf is a text with one digit for every number.
func shapeOf(text string) string {
	var shape strings.Builder
	digit := false
	for i := range len(text) {
		c := text[i] | 0x20
		is := text[i] >= '0' && text[i] <= '9' || digit && (c >= 'a' && c <= 'f' || c == 'x') // of 0x7f35a
		switch {
		case !is:
			shape.WriteByte(text[i])
		case !digit:
			shape.WriteByte('0')
		}
		digit = is
	}
	return shape.String()
}

// ofRequests are in the names of files that handle what requests contain: their messages may quote it.
var ofRequests = []string{"serving", "protocol", "parser", "chat_utils", "logger.py", "async_llm", "tokeniz", "detokeniz", "http_server", "exception_handlers", "api_server", "renderer", "preprocess", "grammar", "structured_output"}

// saidBy returns what a message says, without what it may quote, but for a reason that people know.
func saidBy(b []byte, source string) string {
	text := unquotedOf(b, source)
	lower := strings.ToLower(text)
	for _, x := range routerReasons {
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

// A toolError is what programs say on their standard error that compile, link, or start others.
type toolError struct{ begins, has string }

var toolErrors = []toolError{
	{"/usr/bin/ld: ", "cannot find "}, {"", ": fatal error: "}, {"", "): error: "}, {"ptxas fatal ", ""}, {"nvcc fatal ", ""}, {"collect2: error: ", ""}, {"ninja: error: ", ""},
	{"srun: error: ", ""}, {"slurmstepd: error: ", ""}, {"docker: Error ", ""}, {"exec ", ": no such file or directory"}, {"bash: ", ": command not found"}, {"/bin/sh: ", ": not found"},
	{"[TM][ERROR]", ""}, {"[TM][FATAL]", ""}, {"(raylet", "failed"}, {"(raylet", "marked dead"}, {"(raylet", "is unexpected"}, {"", "error while loading shared libraries: "}, {"OSError: ", "cannot open shared object file"},
	{"FATAL: ", ""}, {"Fatal error", ""}, {"fatal error: ", ""}, {"[FATAL] ", ""}, {"[ERROR] ", ""}, {"NotImplementedError: ", ""},
}

// ofTool reads such a line.
func (r *reader) ofTool(b []byte) bool {
	return slices.ContainsFunc(toolErrors, func(x toolError) bool {
		return bytes.HasPrefix(b, []byte(x.begins)) && bytes.Contains(b, []byte(x.has))
	}) && r.complain(b, r.now, r.unranked(), "tool")
}

// isError reports whether a level is that of an error.
func isError(level []byte) bool {
	return bytes.Contains(level, []byte("ERROR")) || bytes.Contains(level, []byte("CRITICAL")) || bytes.Contains(level, []byte("FATAL"))
}
