package serverlog

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A wrappedServer is the server in a wrapping.
type wrappedServer struct{ host, name string }

// spot returns the source of a line without a stamp: that of the line before it, or the server.
func (r *reader) spot() int32 {
	if r.here == noPlace {
		r.here = r.placeOf(nil, logline.Wrapping{})
	}
	return r.here
}

// comesFrom records the source of a line without a stamp, if its wrapping names the server, as for lines with a stamp.
func (r *reader) comesFrom(around []byte) {
	process, before := logline.Process(around)
	if rank := rankOfWorker(string(process)); rank != trace.NoRank { // a process of vLLM, not a server
		r.here = r.f.Place(series.Place{Server: r.server(r.around.Unwrap(before)), Rank: rank, GPU: series.NoGPU})
		return
	}
	around, ofServer := outside(around)
	w := r.around.Unwrap(around)
	if w.Server == "" {
		return
	}
	id, known := r.servers[wrappedServer{w.Host, w.Server}]
	if known && r.here != noPlace && r.f.Set.Places[r.here].Server == id {
		return // which may belong to a rank
	}
	if known || r.line <= r.headLines && bytes.Contains(r.head, append(slices.Clone(around), "[20"...)) {
		r.here = r.placeOf(nil, w)
	} else if !ofServer && len(process) > 0 && r.here != noPlace && strings.Contains(r.f.Set.Servers[r.f.Set.Places[r.here].Server].Name, " pid=") {
		r.here = r.placeOf(nil, w) // an actor of Ray, next to others that are servers
	}
}

// outside returns the text around a line without the vLLM process at its end, which is only a part of its server, and
// whether there was one.
func outside(around []byte) (outer []byte, ofServer bool) {
	process, before := logline.Process(around)
	if word := logline.Word(process); engineWords[word] != "" || strings.HasPrefix(strings.ToLower(word), "apiserver") {
		return before, true
	}
	return around, false
}

// unranked returns the server of [reader.spot]: any of its processes may have written the line.
func (r *reader) unranked() int32 {
	p := r.f.Set.Places[r.spot()]
	p.Rank = trace.NoRank
	return r.f.Place(p)
}

// rotated matches the suffixes of rotation and compression in the name of a log. A number after a dash is not one: pods of
// a set are called decode-0 and decode-1.
var rotated = lazyregexp.New(`(?:[-.](?:20\d{6}(?:[-_]?\d{2,6})?|\d{4}-\d\d-\d\d(?:[-_T]?\d\d(?:[-_:]?\d\d){0,2})?|gz|zst|(?:log|txt|out|err|jsonl?)(?:-\d{1,3})?)|\.\d{1,3})+$`)

// serverName returns the name of a server from the path of its log: all pieces of a rotated log have the same name. The set
// shortens it.
func serverName(path string) string {
	path = filepath.ToSlash(path)
	dir, name := filepath.Split(path)
	if short := rotated.ReplaceAllString(name, ""); short != "" {
		name = short
	}
	if dir != "" && anyServers.MatchString(name) {
		return strings.TrimRight(dir, "/")
	}
	return dir + name
}

// anyServers matches generic names of logs: their directories distinguish them.
var anyServers = lazyregexp.New(`^(?:sglang-request-metrics|(?:sglang|vllm|server|worker)?[-_.]?(?:server|stdout|stderr|out|err|log|current)?|\d+)$`)

// placeOf returns the place for a header, " DP4 TP0 EP0".
func (r *reader) placeOf(header []byte, w logline.Wrapping) int32 {
	server := r.server(w)
	if r.last.server == server+1 && bytes.Equal(r.last.header, header) {
		return r.last.place
	}
	key := append(append(r.placeKey[:0], byte(server), byte(server>>8), byte(server>>16)), header...)
	r.placeKey = key
	place, ok := r.places[string(key)]
	if !ok {
		place = r.f.Place(series.Place{Server: server, Rank: rankOf(header), GPU: series.NoGPU})
		if len(r.places) < 1<<14 {
			r.places[string(key)] = place
		}
	}
	r.last.header, r.last.server, r.last.place = append(r.last.header[:0], header...), server+1, place
	return place
}

// rankOf parses " DP4 TP0 EP0"; it ignores anything else.
func rankOf(header []byte) trace.Rank {
	rank := trace.NoRank
	for len(header) > 0 {
		var piece []byte
		piece, header, _ = bytes.Cut(bytes.TrimLeft(header, " "), []byte(" "))
		if len(piece) < 3 {
			continue
		}
		n, ok := logline.Digits(piece[2:], len(piece)-2)
		if !ok || n > math.MaxInt16 {
			continue
		}
		switch string(piece[:2]) {
		case "DP":
			rank.DP = int16(n)
		case "PP":
			rank.PP = int16(n)
		case "TP":
			rank.TP = int16(n)
		case "EP":
			rank.EP = int16(n)
		}
	}
	return rank
}

// server returns the server of a line.
func (r *reader) server(w logline.Wrapping) int32 {
	key := wrappedServer{w.Host, w.Server}
	if l := &r.lastServer; l.id > 0 && l.of == key {
		return l.id - 1
	}
	id, ok := r.servers[key]
	if !ok {
		name := r.base
		if w.Server != "" {
			name = w.Server
		}
		id = r.f.Server(series.Server{Host: w.Host, Name: name})
		r.servers[key] = id
	}
	r.lastServer.of, r.lastServer.id = key, id+1
	return id
}

// roleIs sets the role of the server at a place.
func (r *reader) roleIs(place int32, role string) {
	server := r.f.Set.Places[place].Server
	if r.roles[server] != role {
		r.roles[server] = role
	}
}

// batches records that the server at a place runs batches: one that runs both kinds and never mentions disaggregation is
// unified.
func (r *reader) batches(place int32) {
	server := r.f.Set.Places[place].Server
	if _, ok := r.roles[server]; !ok {
		r.roles[server] = "unified"
	}
}

// series returns the series of a metric at a place.
func (r *reader) series(metric series.MetricID, place int32) int32 {
	for int(place) >= len(r.ids) {
		r.ids = append(r.ids, [series.KnownMetrics]int32{})
	}
	id := &r.ids[place][metric]
	if *id == 0 {
		*id = r.f.Series(metric, place) + 1
	}
	return *id - 1
}
