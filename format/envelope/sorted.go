package envelope

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// runBytes is the size of the texts of entries that are held before they are packed and put aside.
const runBytes = 32 << 20

// A sorter sorts entries by time, one stream after another in the order of their first entries. It holds
// [runBytes] of them; more become packed runs, which it merges at the end.
type sorter struct {
	streams map[string]int32
	names   []string // of streams
	newest  []int8   // by stream: whether the newest entry comes first: 1 yes, -1 no, 0 unknown yet
	held    []sorted
	bytes   int // of held
	seen    int64
	runs    []*run
}

// A sorted is an entry and its place: by stream, by time, and by its number within the same moment.
type sorted struct {
	entry
	stream int32
	nth    int64
}

func compareSorted(a, b *sorted) int {
	return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.at, b.at), cmp.Compare(a.nth, b.nth))
}

// add adds the next entry of the file.
func (s *sorter) add(e entry) error {
	k, known := s.streams[e.pod]
	if !known {
		if s.streams == nil {
			s.streams = map[string]int32{}
		}
		k = int32(len(s.names))
		s.streams[e.pod], s.names, s.newest = k, append(s.names, e.pod), append(s.newest, 0)
	}
	s.seen++
	s.held = append(s.held, sorted{e, k, s.seen})
	if s.bytes += len(e.text) + 64; s.bytes >= runBytes {
		return s.pack()
	}
	return nil
}

// order sorts the held entries. If the newest comes first, so does the last one of a moment.
func (s *sorter) order() {
	first := make([]int64, len(s.names))
	for i := range s.held {
		switch x := &s.held[i]; {
		case s.newest[x.stream] != 0:
		case first[x.stream] == 0:
			first[x.stream] = x.at
		case x.at < first[x.stream]:
			s.newest[x.stream] = 1
		case x.at > first[x.stream]:
			s.newest[x.stream] = -1
		}
	}
	for i := range s.held {
		if x := &s.held[i]; s.newest[x.stream] > 0 {
			x.nth = -x.nth
		}
	}
	slices.SortFunc(s.held, func(a, b sorted) int { return compareSorted(&a, &b) })
}

// A run is some entries in order, packed, and the first one that was not taken.
type run struct {
	packed []byte
	z      *zstd.Decoder
	in     *bufio.Reader // unpacked by z
	first  sorted
}

// pack puts the held entries aside.
func (s *sorter) pack() error {
	s.order()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return err
	}
	var head []byte
	for i := range s.held {
		x := &s.held[i]
		local := int64(0)
		if x.local {
			local = 1
		}
		head = head[:0]
		for _, n := range [...]int64{int64(x.stream), x.at, x.nth, local, int64(len(x.unit)), int64(len(x.text))} {
			head = binary.AppendVarint(head, n)
		}
		z.Write(head)
		io.WriteString(z, x.unit)
		io.WriteString(z, x.text)
	}
	if err := z.Close(); err != nil {
		return err
	}
	packed := out.Bytes()
	if moved := memory.Spill(packed); moved != nil {
		packed = moved
	}
	s.runs = append(s.runs, &run{packed: packed})
	clear(s.held)
	s.held, s.bytes = s.held[:0], 0
	return nil
}

// advance reads the next entry of the run; it returns io.EOF at the end.
func (r *run) advance(names []string) error {
	var n [6]int64
	for i := range n {
		v, err := binary.ReadVarint(r.in)
		if err != nil {
			return err
		}
		n[i] = v
	}
	b := make([]byte, n[4]+n[5])
	if _, err := io.ReadFull(r.in, b); err != nil {
		return err
	}
	text := string(b)
	r.first = sorted{entry{pod: names[n[0]], unit: text[:n[4]], text: text[n[4]:], at: n[1], local: n[3] != 0}, int32(n[0]), n[2]}
	return nil
}

// all returns a function that returns the entries in order.
func (s *sorter) all() (next func() (*entry, error), err error) {
	if len(s.runs) == 0 {
		s.order()
		return func() (*entry, error) {
			if len(s.held) == 0 {
				return nil, io.EOF
			}
			x := &s.held[0].entry
			s.held = s.held[1:]
			return x, nil
		}, nil
	}
	if err := s.pack(); err != nil {
		return nil, err
	}
	s.held = nil
	for _, r := range s.runs {
		if r.z, err = zstd.NewReader(bytes.NewReader(r.packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)); err != nil {
			return nil, err
		}
		r.in = bufio.NewReader(r.z)
		if err := r.advance(s.names); err != nil && err != io.EOF { // the last one may be empty
			return nil, err
		}
	}
	s.runs = slices.DeleteFunc(s.runs, func(r *run) bool { return r.first.nth == 0 })
	return s.least, nil
}

// least takes the next entry from the runs.
func (s *sorter) least() (*entry, error) {
	if len(s.runs) == 0 {
		return nil, io.EOF
	}
	r := slices.MinFunc(s.runs, func(a, b *run) int { return compareSorted(&a.first, &b.first) })
	x := r.first.entry
	switch err := r.advance(s.names); err {
	case nil:
	case io.EOF:
		r.z.Close()
		s.runs = slices.DeleteFunc(s.runs, func(o *run) bool { return o == r })
	default:
		return nil, err
	}
	return &x, nil
}

// close discards the rest.
func (s *sorter) close() {
	for _, r := range s.runs {
		if r.z != nil {
			r.z.Close()
		}
	}
	*s = sorter{}
}
