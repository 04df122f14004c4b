package request

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// Own recomputes which rows and parts belong to which request: the parts of a request, its gateway's rows,
// and its envelope. If requests share a gateway or envelope, it belongs to the first one; if gateway rows
// are nested, the outermost one that belongs to a request decides.
func (s *Set) Own() {
	for p := range s.AllParts() {
		s.Parts[p].Request = None
	}
	clear(s.gatewayOf)
	if s.gatewayOf == nil && s.anyGateway() {
		s.gatewayOf = memory.Make[int32](len(s.Rows))
	}
	s.eachRequest(func(r int) {
		for _, p := range s.PartsOf(&s.Requests[r]) {
			s.Parts[p].Request = r
			if root := s.Parts[p].Root; root != None {
				if e := s.Tree.Parent(root); e != None && s.Rows[e].Kind == Envelope {
					s.claim(e, r)
				}
			}
		}
		if g := s.Requests[r].Gateway; g != None {
			s.claim(g, r)
		}
	})
	s.eachRequest(func(r int) {
		if g := s.Requests[r].Gateway; g != None && s.hasClaimed(g, r) {
			s.ownGateway(g, r)
		}
	})
}

func (s *Set) eachRequest(f func(r int)) {
	parallel.Rows(len(s.Requests), RequestSize, func(from, to int) {
		for r := from; r < to; r++ {
			f(r)
		}
	})
}

// claim assigns row i to request r, unless an earlier request has it.
func (s *Set) claim(i, r int) {
	of := &s.gatewayOf[i]
	for {
		old := atomic.LoadInt32(of)
		if old != 0 && old <= int32(r+1) || atomic.CompareAndSwapInt32(of, old, int32(r+1)) {
			return
		}
	}
}

// hasClaimed reports whether gateway row i belongs to request r, and no gateway row around it belongs to any request.
func (s *Set) hasClaimed(i, r int) bool {
	if atomic.LoadInt32(&s.gatewayOf[i]) != int32(r+1) {
		return false
	}
	for i = s.Tree.Parent(i); i != None && s.Rows[i].Kind == Gateway; i = s.Tree.Parent(i) {
		if atomic.LoadInt32(&s.gatewayOf[i]) != 0 {
			return false
		}
	}
	return true
}

// anyGateway reports whether there are rows that belong to a request but not to any of its parts.
func (s *Set) anyGateway() bool {
	var found atomic.Bool
	parallel.Rows(len(s.Rows), RowSize, func(from, to int) {
		if !found.Load() && slices.ContainsFunc(s.Rows[from:to], func(r Row) bool { return r.Kind == Gateway || r.Kind == Envelope }) {
			found.Store(true)
		}
	})
	return found.Load()
}

// ownGateway assigns the gateway rows below row i, recursively, to request r, which owns i.
func (s *Set) ownGateway(i, r int) {
	for _, c := range s.Tree.Children(i) {
		if s.Rows[c].Kind == Gateway {
			atomic.StoreInt32(&s.gatewayOf[c], int32(r+1))
			s.ownGateway(int(c), r)
		}
	}
}

// HandedOn returns when a gateway first and last sent a request to servers, given the gateway's row; 0 if
// it does not say.
func (s *Set) HandedOn(row int) (first, last trace.Time) {
	span := s.Row(row)
	for _, e := range s.InstantsOf(row) {
		if e.Kind != HandedOn || e.Time < span.Start || e.Time > span.End {
			continue
		}
		first = cmp.Or(first, e.Time)
		last = e.Time
	}
	for _, c := range s.Tree.Children(row) {
		if s.Rows[c].Kind == Gateway && first == 0 {
			first, last = s.HandedOn(int(c))
		}
	}
	return first, last
}

// EachURL calls f with the URLs of the servers that a gateway sent r to, if it did so once: after a retry, it is
// unknown which server answered.
func (s *Set) EachURL(r *Request, f func(role Role, url string)) {
	if r.Gateway == None || r.Flags&SharedGateway != 0 {
		return
	}
	sent := order.Only(s.InstantsOf(r.Gateway), func(e Instant) bool { return e.Kind == HandedOn })
	if len(sent) != 1 {
		return
	}
	for a := range s.Args.All(sent[0].Args) {
		if role, ok := urlKeys[s.Syms.Name(a.Key)]; ok {
			f(role, string(a.Bytes()))
		}
	}
}

// EachServedURL calls f with each URL that a gateway sent a finished request to, and the proc of the server that served it there.
func (s *Set) EachServedURL(f func(url string, proc int)) {
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		if r.Status != Finished {
			continue
		}
		s.EachURL(r, func(role Role, url string) {
			for _, p := range s.PartsOf(r) {
				if part := &s.Parts[p]; part.Role == role && part.Proc != None {
					f(url, part.Proc)
				}
			}
		})
	}
}

// urlKeys maps the arguments of gateway events that hold URLs to the roles of the servers.
var urlKeys = map[string]Role{"url": Unified, "prefill_url": Prefill, "decode_url": Decode}

// TraceID returns the trace ID of r's first part as 32 hex digits.
func (s *Set) TraceID(r *Request) string {
	id := TraceText(s.Parts[s.PartsOf(r)[0]].Trace)
	if s.redact != nil {
		return s.redact.Request(id)
	}
	return id
}

// TraceText returns a trace ID as 32 hex digits.
func TraceText(id [2]uint64) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], id[0])
	binary.BigEndian.PutUint64(raw[8:], id[1])
	return hex.EncodeToString(raw[:])
}

// Answering returns the part whose server answered the user: decode, or else unified, prefill, or the first
// part. If there are several of the role, it is one with a root: another may have been on a server that
// died.
func (s *Set) Answering(r *Request) int {
	for _, role := range [...]Role{Decode, Unified, Prefill} {
		found := None
		for _, p := range s.PartsOf(r) {
			if part := &s.Parts[p]; part.Role == role && (found == None || s.Parts[found].Root == None) {
				found = p
			}
		}
		if found != None {
			return found
		}
	}
	return s.PartsOf(r)[0]
}

// Server distinguishes servers of one role on one host: it returns the number of a proc's server, counted
// from 1 by process ID, or 0 if there is only one. A restarted server keeps its number.
func (s *Set) Server(proc int) int {
	if len(s.Servers) == 0 {
		return 0
	}
	return int(s.Servers[proc])
}

// An Attribute is something that was asked for with a request, or a fact about who asks: the model, the
// priority, a header. [Set.AttributeText] returns it as text.
type Attribute struct {
	Key    trace.Sym
	Number float64 // NaN for text
	arg    trace.Arg
}

// EachAttribute calls f for everything that was asked for with r, according to its gateway and servers. It
// may call f more than once for the same key.
func (s *Set) EachAttribute(r *Request, f func(Attribute)) {
	visit := func(row int) {
		if row == None {
			return
		}
		memory.Touch(partSize)
		for a := range s.Args.All(s.Rows[row].Args) {
			if asked, ok := s.attribute(a); ok {
				f(asked)
			}
		}
	}
	visit(r.Gateway)
	for _, p := range s.PartsOf(r) {
		visit(s.Parts[p].Root)
	}
}

// IsResult reports whether an argument identifies the request or says how it went, rather than what was asked for.
func (s *Set) IsResult(key trace.Sym) bool {
	name := s.names[key]
	return slices.ContainsFunc(s.Results, func(r string) bool {
		return name == r || strings.HasSuffix(r, ".") && strings.HasPrefix(name, r)
	})
}

// attribute reads an argument; ok is false if it has several values or none. OpenTelemetry writes headers
// as lists.
func (s *Set) attribute(a trace.Arg) (asked Attribute, ok bool) {
	key := a.Key
	if a.Kind == trace.ArgArray {
		if elems := slices.Collect(a.Elems); len(elems) == 1 {
			a = elems[0]
		}
	}
	asked = Attribute{Key: key, Number: math.NaN(), arg: a}
	switch a.Kind {
	case trace.ArgString:
		return asked, len(a.Bytes()) > 0
	case trace.ArgBool:
	case trace.ArgInt:
		asked.Number = float64(a.Int())
	case trace.ArgUint:
		asked.Number = float64(a.Uint())
	case trace.ArgFloat:
		asked.Number = a.Float()
	default:
		return asked, false
	}
	return asked, true
}

// AttributeText returns an attribute as text, which is not empty.
func (s *Set) AttributeText(a Attribute) string {
	var text string
	switch a.arg.Kind {
	case trace.ArgString:
		text = string(a.arg.Bytes())
	case trace.ArgBool:
		text = strconv.FormatBool(a.arg.Bool())
	default:
		text = strconv.FormatFloat(a.Number, 'g', -1, 64)
	}
	if s.redact != nil {
		text = s.redact.Attribute(s.names[a.Key], text)
	}
	return text
}

// KeyName returns the name of a key of arguments.
func (s *Set) KeyName(key trace.Sym) string { return s.names[key] }
