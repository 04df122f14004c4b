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

// runBytes is how much of the texts of entries is held before it is packed and put aside.
const runBytes = 32 << 20

// A sorter puts entries into the order of their times, one stream after another in the order in which these
// come first. It holds [runBytes] of them; more becomes packed runs, which it merges at the end.
type sorter struct {
	streams map[string]int32
	names   []string // of streams
	newest  []int8   // by stream, whether the newest entry comes first: 1 it does, -1 it does not, 0 nobody knows yet
	held    []sorted
	bytes   int // of held
	seen    int64
	runs    []*run
}

// A sorted is an entry and its place: by stream, by time, and by nth of those of one moment.
type sorted struct {
	entry
	stream int32
	nth    int64
}

func compareSorted(a, b *sorted) int {
	return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.at, b.at), cmp.Compare(a.nth, b.nth))
}

// add takes in the next entry of the file.
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

// order sorts what is held. Of one moment, the last one came first where the newest does.
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

// A run is some entries in order, packed, and the first of those that nobody has taken.
type run struct {
	packed []byte
	z      *zstd.Decoder
	in     *bufio.Reader // what z unpacks
	first  sorted
}

// pack puts aside what is held.
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

// advance reads the next entry of the run; io.EOF is its end.
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

// all passes on the entries in order, to whoever asks for the next one.
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

// least takes the next entry out of the runs.
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

// close gives up what was not read.
func (s *sorter) close() {
	for _, r := range s.runs {
		if r.z != nil {
			r.z.Close()
		}
	}
	*s = sorter{}
}
