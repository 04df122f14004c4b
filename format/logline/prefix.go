package logline

import (
	"bytes"

	"github.com/sgtrace/sgtrace/trace"
)

// A Wrapping is what a log collector puts in front of a line of a process.
type Wrapping struct {
	Server string     // a pod, a container, an actor; "" is unknown
	Host   string     // "" is unknown
	At     trace.Time // Unix time; 0 is not told
}

// An Unwrapper removes the prefixes that log collectors put before lines.
type Unwrapper struct {
	Outer     Stamper // for the stamps that collectors add
	words     map[string]string
	uncolored []byte
	bare      []byte   // buffer for a line without brackets around its stamp
	learned   []string // prefixes of earlier lines, latest first
}

// New returns an unwrapper for the lines of one file.
func New() *Unwrapper { return &Unwrapper{words: map[string]string{}} }

// Bare returns a line without colors, without the frame of k9s, and without the labels of Slurm and RunPod. It
// is valid until the next line.
func (r *Unwrapper) Bare(b []byte) []byte {
	b = bytes.TrimRight(b, "\r")
	if bytes.IndexByte(b, 0x1b) >= 0 || bytes.Contains(b, uncolors) {
		r.uncolored = plain(b, r.uncolored)
		b = r.uncolored
	}
	if rest, ok := bytes.CutPrefix(b, frame); ok {
		b = bytes.TrimRight(bytes.TrimSuffix(bytes.TrimPrefix(rest, []byte(" ")), frame), " ")
	}
	if rest, ok := bytes.CutPrefix(b, bold); ok {
		b = bytes.TrimSuffix(rest, bold)
	}
	if bytes.Contains(b, acrossCluster) { // the faster search goes first: hardly any line has it
		if i := bytes.LastIndex(b, repeated); i >= 0 && bytes.Contains(b[i:], acrossCluster) {
			b = b[:i]
		}
	}
	return r.unboxed(unworked(unlabeled(b)))
}

// repeated and acrossCluster are in Ray's suffix for a line whose copies from other workers it omits, "[repeated 3x
// across cluster]".
var repeated, acrossCluster = []byte(" [repeated "), []byte("x across cluster]")

// unboxed removes the brackets around a stamp with a zone, "[2025-05-21T15:50:19.123Z] ", which Buildkite and ts put
// before lines.
func (r *Unwrapper) unboxed(b []byte) []byte {
	const least, most = len("[2025-05-21T15:50:19Z"), len("[2025-05-21T15:50:19.123456789+00:00")
	if len(b) < least || b[0] != '[' || b[11] != 'T' || !IsStamp(b[1:]) {
		return b
	}
	end := bytes.IndexByte(b[:min(len(b), most+1)], ']')
	if end < least || !bytes.HasPrefix(b[end+1:], []byte(" ")) || bytes.HasPrefix(b[end+2:], []byte(`"`)) { // a line of Envoy
		return b
	}
	if _, n, ok := r.Outer.Zoned(b[1:end]); !ok || n != end-1 {
		return b
	}
	r.bare = append(append(r.bare[:0], b[1:end]...), b[end+1:]...)
	return r.bare
}

// unworked removes what RunPod puts around lines of a worker: its ID and a level, "j6zswihe185nfq[info]", and
// the newline as two characters.
func unworked(b []byte) []byte {
	const longest = 20
	i := bytes.IndexByte(b[:min(len(b), longest)], '[')
	if i < 8 || bytes.ContainsAny(b[:i], "-.") || !isName(b[:i]) {
		return b
	}
	for _, level := range [...]string{"[info]", "[error]", "[warning]", "[debug]"} {
		if rest, ok := bytes.CutPrefix(b[i:], []byte(level)); ok {
			return bytes.TrimSuffix(rest, []byte(`\n`))
		}
	}
	return b
}

// bold surrounds lines that are quoted in Markdown.
var bold = []byte("**")

// frame is at both ends of lines copied from terminal viewers.
var frame = []byte("│")

// unlabeled removes the task number that "srun --label" puts before lines: "12: ".
func unlabeled(b []byte) []byte {
	const longest = 5
	n := 0
	for n < len(b) && n < longest && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if n > 0 && n+1 < len(b) && b[n] == ':' && b[n+1] == ' ' {
		return b[n+2:]
	}
	return b
}

// Unwrap parses the text before the stamp of a line:
//
//	2026-08-22T14:03:05.123456789Z                       kubectl logs --timestamps
//	[pod/decode-0/sglang]                                kubectl logs --prefix
//	2025-07-25T07:53:08.217+08:00 stdout F               containerd
//	sglang-1  |                                          docker compose
//	(SGLangEngine pid=35555, ip=10.15.36.1)              Ray
//	Aug 22 14:03:05 node1 sglang[4100]:                  systemd
//	2026-08-22T14:03:05+0000 node1 sglang[4100]:         systemd, --output=short-iso
func (r *Unwrapper) Unwrap(b []byte) (w Wrapping) {
	if i := bytes.LastIndexByte(b, '\r'); i >= 0 { // a progress bar
		b = b[i+1:]
	}
	for {
		b = bytes.TrimLeft(b, " \t")
		switch {
		case len(b) == 0:
			return w
		case bytes.HasPrefix(b, []byte("[pod/")):
			name, rest, ok := bytes.Cut(b[len("[pod/"):], []byte("] "))
			if !ok {
				return w
			}
			pod, _, _ := bytes.Cut(name, []byte("/"))
			w.Server, b = r.intern(pod), rest
		case b[0] == '(':
			end := closing(b)
			if end < 0 {
				return w
			}
			inner := b[1:end]
			if bytes.HasPrefix(inner, rayWorker) {
				b = b[end+1:]
				continue
			}
			if name, ip, ok := bytes.Cut(inner, []byte(", ip=")); ok {
				w.Host, inner = r.intern(ip), name
			}
			if bytes.Contains(inner, pid) {
				w.Server = r.intern(inner)
			}
			b = b[end+1:]
		case IsStamp(b):
			at, n, ok := r.Outer.Zoned(b)
			if !ok {
				return w
			}
			if w.At, b = at, b[n:]; len(b) > 0 && b[0] == ' ' {
				b = r.unit(unstreamed(b[1:]), &w)
			}
		default:
			return r.named(b, w)
		}
	}
}

// Rest returns the text after the wrapping of a line that has no stamp of its own, including its leading
// blanks, such as a piece of a traceback. It is the whole line if there is no wrapping.
func (r *Unwrapper) Rest(b []byte) []byte {
	for _, shape := range r.learned {
		if n := matches(shape, b); n > 0 {
			b = b[n:]
			break
		}
	}
	const stamp = len("Aug 22 14:03:05 ")
	var w Wrapping
	switch {
	case IsStamp(b):
		_, n, ok := r.Outer.Zoned(b)
		if !ok || n == len(b) {
			return b
		}
		if rest := unstreamed(bytes.TrimPrefix(b[n:], []byte(" "))); len(rest) < len(b)-n-1 {
			return rest
		}
		return r.unit(bytes.TrimPrefix(b[n:], []byte(" ")), &w)
	case bytes.HasPrefix(b, []byte("[pod/")):
		if _, rest, ok := bytes.Cut(b, []byte("] ")); ok {
			return r.Rest(rest)
		}
	case len(b) > 0 && b[0] == '(':
		if end := closing(b); end > 0 && bytes.Contains(b[:end], pid) && bytes.HasPrefix(b[end+1:], []byte(" ")) {
			return b[end+2:]
		}
	case len(b) > stamp && b[3] == ' ' && b[9] == ':' && b[12] == ':':
		if rest := r.unit(b[stamp:], &w); w.Server != "" {
			return rest
		}
	default:
		if name, rest, ok := ofService(b); ok && name != nil {
			return rest
		}
	}
	return b
}

// named parses the rest of a Wrapping: a container of docker compose, or a unit, or the words that stern and
// "aws logs tail" put before lines.
func (r *Unwrapper) named(b []byte, w Wrapping) Wrapping {
	if name, _, ok := ofService(b); ok {
		if name != nil {
			w.Server = r.intern(name)
		}
		return w
	}
	const stamp = len("Aug 22 14:03:05 ")
	if len(b) > stamp && b[3] == ' ' && b[9] == ':' && b[12] == ':' {
		r.unit(b[stamp:], &w)
		return w
	}
	switch words := bytes.Fields(b[:min(len(b), longestPrefix)]); {
	case len(words) == 2 && isName(words[0]) && isName(words[1]): // decode-0 sglang
		w.Server = r.intern(words[0])
	case len(words) == 1 && w.At != 0 && !isStream(words[0]) && LevelOf(b) == nil: // sglang/decode/0a1b
		w.Server = r.intern(bytes.ReplaceAll(bytes.Trim(words[0], "[]:"), []byte("/"), []byte(".")))
	}
	return w
}

// ofService splits a line of docker compose, "sglang-1  | ..", after the bar. name is nil if the text before
// the bar is not a container, but a progress bar.
func ofService(b []byte) (name, rest []byte, ok bool) {
	name, rest, ok = bytes.Cut(b, []byte(" | "))
	if name = bytes.TrimSpace(name); len(name) == 0 || bytes.ContainsAny(name, " %") {
		name = nil
	}
	return name, rest, ok
}

// isStream reports whether b is the name of an output stream.
func isStream(b []byte) bool { return string(b) == "stdout" || string(b) == "stderr" }

// isName reports whether b may be the name of a pod or a container.
func isName(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return len(b) > 0
}

// unit parses "node1 sglang[4100]: ", and returns the rest; all of b if that is missing.
func (r *Unwrapper) unit(b []byte, w *Wrapping) []byte {
	head, rest, ok := bytes.Cut(b, []byte("]: "))
	host, unit, named := bytes.Cut(head, []byte(" "))
	name, pid, numbered := bytes.Cut(unit, []byte("["))
	if !ok || !named || !numbered || len(name) == 0 || bytes.IndexByte(name, ' ') >= 0 {
		return b
	}
	if _, digitsOnly := Digits(pid, len(pid)); !digitsOnly {
		return b
	}
	w.Host, w.Server = r.intern(host), r.intern(name)
	return rest
}

// rayWorker is the prefix of vLLM's actors with the ranks of a server, on any hosts: they are not servers
// themselves.
var rayWorker = []byte("RayWorker")

// pid occurs in the names of processes before lines, "(EngineCore pid=12) ".
var pid = []byte("pid=")

// closing returns the index at which the parenthesis at the beginning of b is closed; -1 if there is none.
func closing(b []byte) int {
	depth := 0
	for i, c := range b[:min(len(b), longestPrefix)] {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// Process returns the last process named in the text before a line, "EngineCore pid=12" for "(EngineCore
// pid=12) ", and the text before that; nil and all of b if there is none. vLLM may name a process twice.
func Process(b []byte) (process, before []byte) {
	before = b
	for i := bytes.IndexByte(b, '('); i >= 0; {
		end := closing(b[i:])
		if end < 0 {
			break
		}
		if inner := b[i+1 : i+end]; bytes.Contains(inner, pid) {
			_, last, _ := bytes.Cut(process, pid)
			if _, n, _ := bytes.Cut(inner, pid); !bytes.Equal(n, last) {
				before = b[:i]
			}
			process = inner
		}
		next := bytes.IndexByte(b[i+end:], '(')
		if next < 0 {
			break
		}
		i += end + next
	}
	return process, before
}

// unstreamed removes the name of a stream, as written by containerd, "stdout F ".
func unstreamed(b []byte) []byte {
	for _, stream := range [...]string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
		if rest, ok := bytes.CutPrefix(b, []byte(stream)); ok {
			return rest
		}
	}
	return b
}

// intern returns b as a string, without allocating if it was seen before.
func (r *Unwrapper) intern(b []byte) string {
	s, ok := r.words[string(b)]
	if !ok {
		s = string(b)
		r.words[s] = s
	}
	return s
}

// uncolors ends a color, whatever became of the escape before it.
var uncolors = []byte("[0m")

// plain removes terminal colors. Their escape may be a byte, or what a collector writes for it, "#033" by rsyslog and
// "^[" by terminals, or missing, as in text that somebody pasted: then only a color has numbers and an m behind the bracket.
func plain(b, to []byte) []byte {
	to = to[:0]
	for len(b) > 0 {
		i := bytes.IndexAny(b, "\x1b[")
		if i < 0 {
			return append(to, b...)
		}
		escaped := b[i] == 0x1b
		before := b[:i]
		if b = b[i+1:]; escaped && len(b) > 0 && b[0] == '[' {
			b = b[1:]
		} else if escaped {
			to = append(to, before...)
			continue
		}
		end := 0
		for end < len(b) && (escaped && (b[end] < '@' || b[end] > '~') || b[end] >= '0' && b[end] <= '9' || b[end] == ';') {
			end++
		}
		if escaped || end > 0 && end < len(b) && b[end] == 'm' {
			to, b = append(to, bytes.TrimSuffix(bytes.TrimSuffix(before, []byte("#033")), []byte("^["))...), b[min(len(b), end+1):]
			continue
		}
		to = append(append(to, before...), '[')
	}
	return to
}
