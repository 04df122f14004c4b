package logline

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A CollectiveReader reads what the lines of one file report about collectives.
type CollectiveReader struct {
	set    *recorder.InFlight
	file   string
	source int32
	names  *trace.SymbolCache

	entered int64              // collectives of all communicators
	watched map[int32]*watched // by rank in the job
	last    head               // of the watchdog's last line that named a group
	comms   map[comm]*joined
	called  map[string]*joined // by the text before a line, and an address
	key     []byte             // buffer for keys of called
	order   []*joined
	ops     map[callName]trace.Sym
	sizes   map[int64]trace.Sym
	Spy     Spy // the current dump of py-spy
}

// NewCollectiveReader returns a reader of a file. source is the index of the input in a [series.Set] whose
// clock its times are on.
func NewCollectiveReader(set *recorder.InFlight, file string, source int) *CollectiveReader {
	return &CollectiveReader{set: set, file: file, source: int32(source) + 1, names: trace.NewSymbolCache(set.Syms), watched: map[int32]*watched{}, last: head{id: recorder.Unknown, member: recorder.Unknown},
		comms: map[comm]*joined{}, called: map[string]*joined{}, ops: map[callName]trace.Sym{}, sizes: map[int64]trace.Sym{}}
}

// End adds a dump for each process in the file.
func (r *CollectiveReader) End() {
	ranks := slices.Sorted(maps.Keys(r.watched))
	known := map[caught]named{}
	for _, rank := range ranks {
		r.watched[rank].namesIn(known)
	}
	for _, rank := range ranks {
		r.set.Add(r.watched[rank].finish(known, r.set.Syms))
	}
	r.endNCCL()
	r.endSpy()
}

// dump returns an empty dump.
func (r *CollectiveReader) dump(by recorder.Source, rank int32) *recorder.FlightDump {
	return &recorder.FlightDump{File: r.file, By: by, Rank: rank, Of: trace.NoRank, Source: r.source}
}

// number parses the number after the first occurrence of a key in b.
func number(b []byte, key string) (int64, bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	return leading(bytes.TrimLeft(b[i+len(key):], " "))
}

// leading parses the number at the beginning of b.
func leading(b []byte) (int64, bool) {
	end := 0
	for end < len(b) && (b[end] >= '0' && b[end] <= '9' || end == 0 && b[end] == '-') {
		end++
	}
	n, err := strconv.ParseInt(string(b[:end]), 10, 64)
	return n, err == nil
}

// token returns the text after a key, up to a blank or one of the bytes in until.
func token(b []byte, key, until string) []byte {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return nil
	}
	b = b[i+len(key):]
	if end := bytes.IndexAny(b, until); end >= 0 {
		b = b[:end]
	}
	return b
}

// byMost sorts communicators by the number of ranks, largest first.
func byMost(a, b *joined) int { return cmp.Compare(b.group.Size, a.group.Size) }
