package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Dimension is a property that spans can be grouped by.
type Dimension struct {
	Name string
	Doc  string
	axis func(*request.Set) *Axis
	// whole dimensions are the same for all spans of a request.
	whole bool
}

// Dimensions lists the dimensions, as --by takes them.
var Dimensions = []Dimension{
	{Name: "stage", axis: StageAxis, Doc: "name of the stage; service:name for spans of services without stages"},
	{Name: "rank", axis: procAxis((*request.Set).RankName), Doc: "rank; for other processes, thread label and host"},
	{Name: "process", axis: procAxis(processName), Doc: "rank and native thread ID: one start of a server"},
	{Name: "host", axis: procAxis((*request.Set).HostOf), Doc: "host name, or the start of its ID"},
	{Name: "label", axis: ofProc(func(p *request.Proc) string { return p.Label }), Doc: "thread label, the kind of process"},
	{Name: "role", axis: ofProc(func(p *request.Proc) string { return p.Role.String() }), Doc: "unified, prefill, decode, router"},
	{Name: "service", axis: ofProc(func(p *request.Proc) string { return p.Service }), Doc: "service.name"},
	{Name: "request", axis: requestAxis, whole: true, Doc: "rid"},
	{Name: "status", axis: requestTextAxis(statusName), whole: true, Doc: "how the request ended"},
	{Name: "model", axis: requestTextAxis((*request.Set).ModelOf), whole: true, Doc: "model that answered"},
	{Name: "file", axis: fileAxis, Doc: "input file"},
}

func processName(s *request.Set, proc int) string {
	return s.RankName(proc) + naming.Separator + "pid " + strconv.FormatInt(s.Procs[proc].PID, 10)
}

func statusName(_ *request.Set, r *request.Request) string { return r.Status.String() }

// ParseDimensions parses a list such as "role,host". It puts stage first unless the list has it, because durations of
// different stages are not comparable.
func ParseDimensions(list string) ([]Dimension, error) {
	var by []Dimension
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(Dimensions, func(d Dimension) bool { return d.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("cannot group by %q%s There are %s", name, cmp.Or(similar.Hint(name, dimensionNames()), "."), strings.Join(dimensionNames(), ", "))
		}
		by = append(by, Dimensions[i])
	}
	if !slices.ContainsFunc(by, func(d Dimension) bool { return d.Name == "stage" }) {
		by = slices.Insert(by, 0, Dimensions[0])
	}
	return by, nil
}

func dimensionNames() []string {
	return order.Each(Dimensions, func(d Dimension) string { return d.Name })
}

// A Spot is the span, proc, and request that a dimension is computed from. Each may be None.
type Spot struct{ Span, Proc, Request int }

// An Axis is a dimension of one set. It maps every spot to a small number, so that grouping a span needs no strings.
type Axis struct {
	Code func(Spot) int32
	Text func() []string // texts by code, for all codes so far; "" is unknown
	// compare orders the texts; nil keeps the order of the codes.
	compare func(x, y string) int
}

// ranks returns the position of every code in the order of display.
func (a *Axis) ranks() []int32 {
	text := a.Text()
	codes := order.Sorted(len(text), func(x, y int32) int {
		if a.compare == nil {
			return 0
		}
		return a.compare(text[x], text[y])
	})
	ranks := make([]int32, len(text))
	for rank, code := range codes {
		ranks[code] = int32(rank)
	}
	return ranks
}

// A coder numbers strings in the order in which it first sees them.
type coder struct {
	texts []string
	codes map[string]int32
}

func (c *coder) text() []string { return c.texts }

func newCoder() *coder { return &coder{codes: map[string]int32{}} }

func (c *coder) code(s string) int32 {
	return order.At(c.codes, &c.texts, s, func() string { return s })
}

// procAxis makes an axis of the names of procs.
func procAxis(name func(s *request.Set, proc int) string) func(*request.Set) *Axis {
	return func(s *request.Set) *Axis { return ProcAxis(s, name) }
}

// ofProc makes an axis of a property of each proc.
func ofProc(name func(p *request.Proc) string) func(*request.Set) *Axis {
	return procAxis(func(s *request.Set, proc int) string { return name(&s.Procs[proc]) })
}

// ProcAxis returns an axis of the names of procs, numbered in the order of display.
func ProcAxis(s *request.Set, name func(s *request.Set, proc int) string) *Axis {
	c := newCoder()
	codes := make([]int32, len(s.Procs))
	for i := range s.Procs {
		codes[i] = c.code(name(s, i))
	}
	unknown := c.code("")
	return &Axis{Text: c.text, Code: func(p Spot) int32 {
		if p.Proc == request.None {
			return unknown
		}
		return codes[p.Proc]
	}}
}

// requestAxis distinguishes requests with the same rid.
func requestAxis(s *request.Set) *Axis {
	text := make([]string, len(s.Requests)+1)
	for i := range s.AllRequests() {
		text[i] = s.Text(s.Requests[i].RID)
	}
	return &Axis{Text: func() []string { return text }, Code: func(p Spot) int32 {
		if p.Request == request.None {
			return int32(len(text) - 1)
		}
		return int32(p.Request)
	}}
}

// requestTextAxis returns an axis of a property of requests, sorted alphabetically.
func requestTextAxis(property func(*request.Set, *request.Request) string) func(*request.Set) *Axis {
	return func(s *request.Set) *Axis {
		c := newCoder()
		codes := order.EachRow(s.Requests, func(r *request.Request) int32 { return c.code(property(s, r)) })
		unknown := c.code("")
		return &Axis{Text: c.text, compare: strings.Compare, Code: func(p Spot) int32 {
			if p.Request == request.None {
				return unknown
			}
			return codes[p.Request]
		}}
	}
}

// fileAxis numbers files in the order in which they were read.
func fileAxis(s *request.Set) *Axis {
	text := make([]string, len(s.Files))
	for i := range text {
		text[i] = s.Files[i].Name
	}
	return &Axis{Text: func() []string { return text }, Code: func(p Spot) int32 {
		return int32(s.Sources[s.Row(p.Span).Source].File)
	}}
}

// StageAxis sorts stages by the way of a request through the system, and unknown stages after them by name.
func StageAxis(s *request.Set) *Axis {
	c := newCoder()
	names := s.Syms.Names()
	known := make([]int32, len(names)) // by symbol; 0 is not met yet
	foreign := map[[2]trace.Sym]int32{}
	return &Axis{Text: c.text, compare: s.CompareStages, Code: func(p Spot) int32 {
		span := s.Row(p.Span)
		if s.Kind(p.Span) == request.Stage {
			if known[span.Name] == 0 {
				known[span.Name] = 1 + c.code(names[span.Name])
			}
			return known[span.Name] - 1
		}
		key := [2]trace.Sym{s.Writers[s.Sources[span.Source].Writer].Service, span.Name}
		return order.Memo(foreign, key, func() int32 { return c.code(s.StageName(p.Span)) })
	}}
}
