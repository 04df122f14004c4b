package rows

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// payloads turns structured payloads into arguments.
type payloads struct {
	src   *Source
	names *nvtxNames
	keys  *trace.SymbolCache
	put   *trace.ArgsAppender // nil omits payloads
	find  *redact.Filter
	list  trace.ArgList
	bin   []byte
	quiet bool // leaves damage to be reported by another scan
}

func (p *payloads) init(s *Source, n *nvtxNames) {
	p.src, p.names, p.keys, p.find = s, n, trace.NewSymbolCache(s.Options.Syms), redact.NewFilter(s.Options.Syms)
}

// args returns the arguments of an annotation, 0 if there are none.
func (p *payloads) args(c *cursor, domain int64) trace.ArgsID {
	if p.src.Options.Args == nil {
		return 0
	}
	if p.decode(c, domain); len(p.list) == 0 {
		return 0
	}
	if p.put == nil {
		p.put = p.src.Options.Args.Appender()
	}
	return p.put.Put(p.list)
}

// decode turns the payload of an annotation into a list.
func (p *payloads) decode(c *cursor, domain int64) {
	p.list = p.list[:0]
	switch {
	case !c.null(nvtxJSON):
		p.json(c.bytes(nvtxJSON), c.sel.table)
	case !c.null(nvtxJSONID):
		p.json([]byte(p.src.Options.Syms.Name(c.name(nvtxJSONID))), c.sel.table)
	case !c.null(nvtxBinary):
		p.binary(c.bytes(nvtxBinary), domain)
	}
}

// json adds the members of an object. Nested values stay text.
func (p *payloads) json(text []byte, table string) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		p.broken(table)
		return
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			p.broken(table)
			return
		}
		before := len(p.list)
		p.member(p.keys.Intern([]byte(key)), value)
		if !p.src.Options.KeepSecrets && p.find.Holds(p.list[before:]) {
			p.list = p.list[:before]
			p.hidden(key, table)
		}
	}
}

func (p *payloads) hidden(key, table string) {
	if p.quiet {
		return
	}
	p.src.Diag(trace.SecretLeftOut, table, 0, "payload", key)
}

func (p *payloads) broken(table string) {
	if p.quiet {
		return
	}
	p.src.Diag(trace.NsysPayload, table, 0)
}

func (p *payloads) member(key trace.Sym, value []byte) {
	var text string
	var number json.Number
	var truth bool
	switch {
	case string(value) == "null":
	case json.Unmarshal(value, &truth) == nil:
		p.list = p.list.Bool(key, truth)
	case json.Unmarshal(value, &text) == nil:
		p.list = p.list.String(key, text)
	case json.Unmarshal(value, &number) == nil:
		p.number(key, number)
	default:
		p.list = p.list.Bytes(key, value)
	}
}

func (p *payloads) number(key trace.Sym, n json.Number) {
	if i, err := n.Int64(); err == nil {
		p.list = p.list.Int(key, i)
		return
	}
	var u uint64
	if json.Unmarshal([]byte(n), &u) == nil {
		p.list = p.list.Uint(key, u)
		return
	}
	f, _ := n.Float64()
	p.list = p.list.Float(key, f)
}

// A payloadEntry is one field of a binary payload.
type payloadEntry struct {
	name         string
	kind, offset int64
}

type payloadKey struct{ domain, schema int64 }

// Numbers of columns of NVTX_PAYLOAD_SCHEMA_ENTRIES.
const (
	entryDomain = iota
	entrySchema
	entryIndex
	entryKind
	entryName
	entryOffset
)

var payloadTable = tableSpec{
	names: []string{"NVTX_PAYLOAD_SCHEMA_ENTRIES"},
	columns: []column{
		entryDomain: {name: "domainId", need: true},
		entrySchema: {name: "schemaId", need: true},
		entryIndex:  {name: "idx"},
		entryKind:   {name: "type", need: true},
		entryName:   {name: "name", need: true},
		entryOffset: {name: "offset"},
	},
}

// readPayloads reads the layouts of binary payloads. Every process lists the same ones again, without its pid;
// the first one of each index counts.
func (s *Source) readPayloads() map[payloadKey][]payloadEntry {
	all := map[payloadKey][]payloadEntry{}
	s.scan(&payloadTable, func(c *cursor) bool {
		key := payloadKey{c.int(entryDomain), c.int(entrySchema)}
		if c.int(entryIndex) >= int64(len(all[key])) {
			all[key] = append(all[key], payloadEntry{c.text(entryName), c.int(entryKind), c.int(entryOffset)})
		}
		return true
	})
	return all
}

// payloadTypes are the entry types of fixed size, by their numbers in nvToolsExtPayload.h (LP64).
var payloadTypes = map[int64]struct {
	size   int
	signed bool
	float  bool
}{
	1: {1, true, false}, 2: {1, false, false}, 3: {2, true, false}, 4: {2, false, false},
	5: {4, true, false}, 6: {4, false, false}, 7: {8, true, false}, 8: {8, false, false},
	9: {8, true, false}, 10: {8, false, false}, 11: {1, true, false}, 12: {1, false, false},
	13: {2, true, false}, 14: {2, false, false}, 15: {4, true, false}, 16: {4, false, false},
	17: {8, true, false}, 18: {8, false, false}, 19: {4, true, true}, 20: {8, true, true},
	22: {8, false, false}, 23: {8, false, false},
}

// binary adds the fields of a binary payload: a header of four words (domain,
// schema, size, offset) and the data. Some versions write it as hexadecimal text.
func (p *payloads) binary(data []byte, domain int64) {
	const headerSize = 32
	if text := strings.TrimPrefix(string(data), "0x"); len(text) >= 2*headerSize && len(text)%2 == 0 {
		if raw, err := hex.AppendDecode(p.bin[:0], []byte(text)); err == nil {
			p.bin, data = raw, raw
		}
	}
	if len(data) < headerSize {
		return
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(data[8*i:])) }
	entries, ok := p.names.payloads[payloadKey{word(0), word(1)}]
	if !ok {
		entries = p.names.payloads[payloadKey{domain, word(1)}]
	}
	size, offset := uint64(word(2)), uint64(word(3))
	// The offset is that of the data within the event, or the size of the header itself.
	body := data[headerSize:]
	if offset > headerSize && offset < uint64(len(data)) {
		body = data[offset:]
	}
	body = body[:min(size, uint64(len(body)))]
	for _, e := range entries {
		t, ok := payloadTypes[e.kind]
		if !ok || e.offset < 0 || e.offset > int64(len(body)-t.size) {
			continue
		}
		var word [8]byte
		copy(word[:], body[e.offset:e.offset+int64(t.size)])
		p.field(p.keys.Intern([]byte(e.name)), binary.LittleEndian.Uint64(word[:]), 64-8*t.size, t.signed, t.float)
	}
}

func (p *payloads) field(key trace.Sym, v uint64, unused int, signed, float bool) {
	switch {
	case float && unused == 32:
		p.list = p.list.Float(key, float64(math.Float32frombits(uint32(v))))
	case float:
		p.list = p.list.Float(key, math.Float64frombits(v))
	case signed:
		p.list = p.list.Int(key, int64(v<<unused)>>unused)
	default:
		p.list = p.list.Uint(key, v)
	}
}
