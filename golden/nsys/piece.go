package nsys

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// piece is a session in which a part of the recording was captured: the events entirely within it, and ranges that are open
// at its end.
type piece struct {
	host     *host
	n        int // from 1 on
	from, to int64
}

// pieceGap is the time between two sessions.
const pieceGap = 4 * ms

// pieces divides the recording evenly.
func (h *host) pieces() []piece {
	n := int64(h.config.Pieces)
	length := (h.to - h.from - (n-1)*pieceGap) / n
	list := make([]piece, n)
	for i := range list {
		from := h.from + int64(i)*(length+pieceGap)
		list[i] = piece{h, i + 1, from, from + length}
	}
	list[n-1].to = h.to
	return list
}

// path returns the name of the file of a piece.
func (s *piece) path(path string) string {
	if s.host.config.Pieces == 1 {
		return path
	}
	extension := filepath.Ext(path)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(path, extension), s.n, extension)
}

// clocked reports whether the file contains the start of its session.
func (s *piece) clocked() bool {
	return !slices.Contains(s.host.config.Unclocked, s.host.host().Name)
}

// time returns a time as in the file.
func (s *piece) time(at int64) int64 {
	return at - s.from + int64(s.host.config.Shift/time.Nanosecond)
}

// has reports whether an interval is in the session.
func (s *piece) has(t interval) bool { return s.from <= t.start && t.end <= s.to }

// holds is has for the events of inOrder.
func holds[T timed](s *piece) func(*process, *T) bool {
	return func(_ *process, x *T) bool { return s.has((*x).when()) }
}

func (s *piece) hasCall(_ *process, k *call) bool { return s.has(k.interval) && !k.lost }

func (s *piece) hasWork(_ *process, k *work) bool { return s.has(k.interval) }

// hasLaunch reports whether the file has both a piece of work and its call.
func (s *piece) hasLaunch(p *process, k *work) bool {
	return s.has(k.interval) && s.hasCall(p, &p.calls[k.call])
}

// hasRange reports whether a range begins in the session.
func (s *piece) hasRange(_ *process, r *nvtxRange) bool {
	return s.from <= r.start && r.start <= s.to
}

// isOpen reports whether a range does not end in the session.
func (s *piece) isOpen(r *nvtxRange) bool { return r.end > s.to }
