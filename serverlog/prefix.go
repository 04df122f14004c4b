package serverlog

import (
	"bytes"

	"github.com/sgtrace/sgtrace/trace"
)

// A wrapping is what stands in front of a line of a server, by whatever collected it.
type wrapping struct {
	server string     // a pod, a container, an actor; "" is not told
	host   string     // "" is not told
	at     trace.Time // Unix time; 0 is not told
}

// unwrap reads what stands in front of the stamp of a line:
//
//	2026-08-22T14:03:05.123456789Z                       kubectl logs --timestamps
//	[pod/decode-0/sglang]                                kubectl logs --prefix
//	2025-07-25T07:53:08.217+08:00 stdout F               containerd
//	sglang-1  |                                          docker compose
//	(SGLangEngine pid=35555, ip=10.15.36.1)              Ray
//	Aug 22 14:03:05 node1 sglang[4100]:                  systemd
//	2026-08-22T14:03:05+0000 node1 sglang[4100]:         systemd, --output=short-iso
func (r *reader) unwrap(b []byte) (w wrapping) {
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
			w.server, b = r.intern(pod), rest
		case b[0] == '(':
			inner, rest, ok := bytes.Cut(b[1:], []byte(")"))
			if !ok {
				return w
			}
			if name, ip, ok := bytes.Cut(inner, []byte(", ip=")); ok {
				w.host, inner = r.intern(ip), name
			}
			if bytes.Contains(inner, []byte("pid=")) {
				w.server = r.intern(inner)
			}
			b = rest
		case isStamp(b):
			at, n, ok := r.outer.zoned(b)
			if !ok {
				return w
			}
			if w.at, b = at, b[n:]; len(b) > 0 && b[0] == ' ' {
				b = r.unit(b[1:], &w)
			}
		default:
			return r.named(b, w)
		}
	}
}

// named reads the rest of a wrapping: the line of a container of docker compose, or of a unit.
func (r *reader) named(b []byte, w wrapping) wrapping {
	if name, _, ok := bytes.Cut(b, []byte(" | ")); ok {
		if name = bytes.TrimRight(name, " "); len(name) > 0 && bytes.IndexByte(name, ' ') < 0 {
			w.server = r.intern(name)
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
func (r *reader) unit(b []byte, w *wrapping) []byte {
	head, rest, ok := bytes.Cut(b, []byte("]: "))
	host, unit, named := bytes.Cut(head, []byte(" "))
	name, pid, numbered := bytes.Cut(unit, []byte("["))
	if !ok || !named || !numbered || len(name) == 0 || bytes.IndexByte(name, ' ') >= 0 {
		return b
	}
	if _, digitsOnly := digits(pid, len(pid)); !digitsOnly {
		return b
	}
	w.host, w.server = r.intern(host), r.intern(name)
	return rest
}

// intern returns a text that was seen before, without garbage.
func (r *reader) intern(b []byte) string {
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
