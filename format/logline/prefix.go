package logline

import (
	"bytes"

	"github.com/sgtrace/sgtrace/trace"
)

// A Wrapping is what stands in front of a line of a process, by whatever collected it.
type Wrapping struct {
	Server string     // a pod, a container, an actor; "" is not told
	Host   string     // "" is not told
	At     trace.Time // Unix time; 0 is not told
}

// An Unwrapper takes lines out of what collectors of logs put around them.
type Unwrapper struct {
	Outer     Stamper // of the stamps that collectors add
	words     map[string]string
	uncolored []byte
}

// New returns an unwrapper, for the lines of one file.
func New() *Unwrapper { return &Unwrapper{words: map[string]string{}} }

// Bare returns a line without colors, and without the label of Slurm, until the next line.
func (r *Unwrapper) Bare(b []byte) []byte {
	b = bytes.TrimRight(b, "\r")
	if bytes.IndexByte(b, 0x1b) >= 0 {
		r.uncolored = plain(b, r.uncolored)
		b = r.uncolored
	}
	return unlabeled(b)
}

// unlabeled removes what "srun --label" puts before lines, the number of a task: "12: ".
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

// Unwrap reads what stands in front of the stamp of a line:
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
			inner, rest, ok := bytes.Cut(b[1:], []byte(")"))
			if !ok {
				return w
			}
			if name, ip, ok := bytes.Cut(inner, []byte(", ip=")); ok {
				w.Host, inner = r.intern(ip), name
			}
			if bytes.Contains(inner, []byte("pid=")) {
				w.Server = r.intern(inner)
			}
			b = rest
		case IsStamp(b):
			at, n, ok := r.Outer.Zoned(b)
			if !ok {
				return w
			}
			if w.At, b = at, b[n:]; len(b) > 0 && b[0] == ' ' {
				b = r.unit(b[1:], &w)
			}
		default:
			return r.named(b, w)
		}
	}
}

// Rest returns what follows the wrapping of a line that has no stamp of its own, with its blanks: a piece
// of a traceback. It is all of the line where nothing is around it.
func (r *Unwrapper) Rest(b []byte) []byte {
	const stamp = len("Aug 22 14:03:05 ")
	var w Wrapping
	switch {
	case IsStamp(b):
		_, n, ok := r.Outer.Zoned(b)
		if !ok || n == len(b) {
			return b
		}
		b = bytes.TrimPrefix(b[n:], []byte(" "))
		for _, stream := range [...]string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
			if rest, ok := bytes.CutPrefix(b, []byte(stream)); ok {
				return rest
			}
		}
		return r.unit(b, &w)
	case bytes.HasPrefix(b, []byte("[pod/")):
		if _, rest, ok := bytes.Cut(b, []byte("] ")); ok {
			return r.Rest(rest)
		}
	case len(b) > 0 && b[0] == '(':
		if inner, rest, ok := bytes.Cut(b, []byte(") ")); ok && bytes.Contains(inner, []byte("pid=")) {
			return rest
		}
	case len(b) > stamp && b[3] == ' ' && b[9] == ':' && b[12] == ':':
		if rest := r.unit(b[stamp:], &w); w.Server != "" {
			return rest
		}
	default:
		if name, rest, ok := bytes.Cut(b, []byte(" | ")); ok {
			if name = bytes.TrimRight(name, " "); len(name) > 0 && bytes.IndexByte(name, ' ') < 0 {
				return rest
			}
		}
	}
	return b
}

// named reads the rest of a Wrapping: the line of a container of docker compose, or of a unit.
func (r *Unwrapper) named(b []byte, w Wrapping) Wrapping {
	if name, _, ok := bytes.Cut(b, []byte(" | ")); ok {
		if name = bytes.TrimRight(name, " "); len(name) > 0 && bytes.IndexByte(name, ' ') < 0 {
			w.Server = r.intern(name)
		}
		return w
	}
	const stamp = len("Aug 22 14:03:05 ")
	if len(b) > stamp && b[3] == ' ' && b[9] == ':' && b[12] == ':' {
		r.unit(b[stamp:], &w)
	}
	return w
}

// unit reads "node1 sglang[4100]: ", and returns what follows; all of b if that is not there.
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

// intern returns a text that was seen before, without garbage.
func (r *Unwrapper) intern(b []byte) string {
	s, ok := r.words[string(b)]
	if !ok {
		s = string(b)
		r.words[s] = s
	}
	return s
}

// plain removes the colors of a terminal.
func plain(b, to []byte) []byte {
	to = to[:0]
	for len(b) > 0 {
		i := bytes.IndexByte(b, 0x1b)
		if i < 0 {
			return append(to, b...)
		}
		to = append(to, b[:i]...)
		b = b[i+1:]
		if len(b) > 0 && b[0] == '[' {
			end := 1
			for end < len(b) && (b[end] < '@' || b[end] > '~') {
				end++
			}
			b = b[min(len(b), end+1):]
		}
	}
	return to
}
