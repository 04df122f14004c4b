package series

import (
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
)

// nameKernels determines the host of kernel logs that do not name it: a host, among those that other inputs know, that
// is in the name of the log's file or folder, "dmesg/gpu-node-04.log".
func (s *Set) nameKernels() {
	for i := range s.Sources {
		src := &s.Sources[i]
		if src.Encoding != "kernel log" {
			continue
		}
		host := s.hostIn(src.Name)
		if host == "" {
			continue
		}
		for k := range src.part.instants {
			x := &s.Instants[src.part.instant+k]
			p := s.Places[x.Place]
			if s.Servers[p.Server] != (Server{}) {
				continue
			}
			p.Server = order.At(s.serverOf, &s.Servers, Server{Host: host}, func() Server { return Server{Host: host} })
			x.Place = indexOf(s.placeOf, &s.Places, p)
			src.about(x.Place)
		}
	}
}

// hostIn returns the host whose name is a word of a path, the longest if there are several; "" if none.
func (s *Set) hostIn(path string) (host string) {
	for i := range s.Servers {
		name := s.Servers[i].Host
		if len(name) <= len(host) {
			continue
		}
		for rest, found := path, true; found; {
			var before string
			if before, rest, found = strings.Cut(rest, name); found && !endsInWord(before) && !beginsWithWord(rest) {
				host = name
			}
		}
	}
	return host
}

func endsInWord(s string) bool { return s != "" && isWord(s[len(s)-1]) }

func beginsWithWord(s string) bool { return s != "" && isWord(s[0]) }

func isWord(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
