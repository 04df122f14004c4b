package parse

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A parser turns pieces of an input into batches. Each goroutine has its own.
//
// It walks b, which holds the input from the byte at base on. A function that needs the bytes after b to decide
// returns errShort, unless final says that there are none; so the result does not depend on where an input is
// cut.
type parser struct {
	*settings
	b     []byte
	base  int64
	final bool
	// failed means that reading failed after b: that explains an early end.
	failed bool
	// careful mode examines what ends a string, because the event is damaged.
	careful bool
	// clock is the origin of relative times, if the filter needs it.
	clock int64

	ev    event
	notes notes
	list  trace.ArgList // of the current event
	lists uint64        // number of argument lists begun
	got   [argRoles]argValue
	found uint32 // bits of the roles in got

	out        Batch
	rows       rowIndex
	args       arena
	symbols    *trace.SymbolCache // of everything except names and categories
	names      map[string]*name
	cats       map[string]*catEntry
	noCat      *catEntry
	recentCats [16]*catEntry
	text       []byte // scratch
	secrets    *redact.Filter
	linked     bool // a correlation was seen
}

// An arena stores arguments: trace.Args, or an appender to it.
type arena interface {
	Put(list []byte) trace.ArgsID
}

// settings are shared by all parsers of a file.
type settings struct {
	Limits
	opt   Options
	cats  map[string]bool // to keep, in lower case; nil keeps all
	plain bool            // the filter rejects nothing
	timed bool            // the filter restricts times
}

func newSettings(opt Options, l Limits) *settings {
	s := &settings{Limits: l, opt: opt}
	f := &s.opt.Filter
	if f.Cats != nil {
		s.cats = map[string]bool{}
		for _, c := range f.Cats {
			s.cats[strings.ToLower(c)] = true
		}
	}
	s.timed = f.From != 0 || f.To != 0
	s.plain = f.Cats == nil && f.Names == nil && f.MinDur <= 0 && !s.timed && !f.IndexOnly
	return s
}

func newParser(s *settings) *parser {
	p := &parser{
		settings: s, rows: rowIndex{written: map[string]*writtenRow{}, ids: map[RowID]*rowEntry{}}, args: s.opt.Args,
		symbols: trace.NewSymbolCache(s.opt.Syms), secrets: redact.NewFilter(s.opt.Syms),
		names: map[string]*name{}, cats: map[string]*catEntry{},
	}
	p.noCat = p.category(nil, false)
	return p
}

// maxCached bounds what a parser remembers about names and the like: an input with more distinct ones is noise.
const maxCached = 1 << 16

// A name is the name of an event and its meaning. It is looked up once per event, and classified once.
type name struct {
	sym   trace.Sym
	text  string
	odd   bool // has control characters or is not UTF-8
	match bool // passes the filter
	known uint8
	comm  bool // if knowComm: whether it is a communication kernel
	step  bool // if knowStep: whether it is a step
	label profile.StepName
	asks  trace.Sym // if knowAsks: the collective that an annotation announces; 0 is none
	waits bool      // if knowWaits: whether it is a collective of hosts
}

const (
	knowComm uint8 = 1 << iota
	knowStep
	knowAsks
	knowWaits
)

func (p *parser) name(raw []byte, escaped bool) *name {
	if n := p.names[string(raw)]; n != nil {
		return n
	}
	key, text := string(raw), string(raw)
	if escaped {
		p.text = p.unescape(p.text[:0], raw)
		text = string(p.text)
	}
	n := &name{sym: p.opt.Syms.Intern(text), text: text, odd: isOdd(raw)}
	n.match = p.opt.Filter.Names == nil || p.opt.Filter.Names.MatchString(text)
	if len(p.names) < maxCached {
		p.names[key] = n
	}
	return n
}

// isOdd reports whether a string has raw control characters or is not UTF-8.
func isOdd(s []byte) bool {
	for _, c := range s {
		if c < ' ' {
			return true
		}
	}
	return !utf8.Valid(s)
}

func (n *name) isComm() bool {
	if n.known&knowComm == 0 {
		n.known |= knowComm
		n.comm = kernelname.MeetsOthers(n.text)
	}
	return n.comm
}

func (n *name) isStep() bool {
	if n.known&knowStep == 0 {
		n.known |= knowStep
		n.label, n.step = profile.ParseStep(n.text)
	}
	return n.step
}

// isWaiting reports whether an annotation with the name is one rank's part in a collective of hosts.
func (n *name) isWaiting() bool {
	if n.known&knowWaits == 0 {
		n.known |= knowWaits
		n.waits = kernelname.WaitsOnHost(n.text)
	}
	return n.waits
}

// isAsking reports whether an annotation with the name says which collective the calls in it request.
func (n *name) isAsking(symbols *trace.SymbolCache) bool {
	if n.known&knowAsks == 0 {
		n.known |= knowAsks
		if op, ok := kernelname.CollectiveOfAnnotation(n.text); ok {
			n.asks = symbols.Intern([]byte(op))
		}
	}
	return n.asks != 0
}

// A catEntry is a known category, with the keys of its events' arguments, which come in the same order again
// and again.
type catEntry struct {
	text  string // as in the file
	sym   trace.Sym
	lane  Lane
	role  Role
	kind  profile.SliceKind
	match bool // passes the filter
	args  bool // it passes, and keeps its arguments
	keys  map[string]*argKey
	first argKey // list head: its next is the first key
}

var CategoryByName = func() map[string]*category {
	m := map[string]*category{}
	for i := range categories {
		m[categories[i].name] = &categories[i]
	}
	return m
}()

func (p *parser) category(raw []byte, escaped bool) *catEntry {
	// Events alternate between a few categories, whose names mostly differ in length.
	recent := &p.recentCats[len(raw)%len(p.recentCats)]
	if *recent != nil && (*recent).text == string(raw) {
		return *recent
	}
	c := p.cats[string(raw)]
	if c == nil {
		text := string(raw)
		if escaped {
			text = string(p.unescape(nil, raw))
		}
		c = &catEntry{text: string(raw), keys: map[string]*argKey{}}
		if known := CategoryByName[text]; known != nil {
			c.lane, c.role = known.lane, known.Role
			if known.Now != "" {
				text = known.Now
			}
		}
		c.sym, c.kind = p.opt.Syms.Intern(text), profile.SliceKindOf(text)
		c.match = p.settings.cats == nil || p.settings.cats[strings.ToLower(text)] ||
			(text == "" || text == LaunchArrow) && p.settings.cats[profile.KernelCategory] || // the row may belong to a device
			text != "" && CategoryByName[text] == nil && p.settings.cats[profile.OtherCategory]
		argCats := p.opt.Filter.ArgCats
		c.args = c.match && (argCats == nil || slices.Contains(argCats, text) ||
			text != "" && CategoryByName[text] == nil && slices.Contains(argCats, profile.OtherCategory))
		if len(p.cats) < maxCached {
			p.cats[c.text] = c
		}
	}
	*recent = c
	return c
}

// Options control how a file is read.
type Options struct {
	Syms    *trace.Symbols
	Args    *trace.Args
	Diags   *trace.Diags
	Workers int // parsing goroutines; 0 is one per core
	Filter  profile.Filter
	// Base is the base time of the file in ns, if known from an earlier read; 0 is unknown.
	Base int64
	// KeepSecrets keeps arguments that may hold prompts or credentials.
	KeepSecrets bool
}

// Structural errors of a file. The current event is lost.
var (
	errShort    = jsonscan.ErrShort
	errSyntax   = errors.New("this is not JSON and cannot be repaired")
	errRepeated = errors.New("a member occurs twice, as if two events ran together")
	errInside   = errors.New("an event begins where none can")
	errTooLong  = errors.New("this is longer than any real event")
	errDeep     = errors.New("this is nested too deeply")
)
