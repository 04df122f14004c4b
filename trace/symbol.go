package trace

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
)

// Sym is an interned string; 0 is the empty string. The number of a Sym depends on the order in which
// goroutines intern strings, so it must never decide an order or appear in output: compare the strings.
type Sym uint32

// Symbols interns strings. It is safe for concurrent use; a goroutine that interns a lot uses a
// [SymbolCache] in front of it.
type Symbols struct {
	shards [64]symbolShard // by hash, so that goroutines seldom wait for each other
	mu     sync.RWMutex    // guards the following fields; lock a shard before it
	names  []string
	// rename changes the strings that Name and Names return; nil keeps them.
	rename func(string) string
}

// A symbolShard has the symbols of some of the strings.
type symbolShard struct {
	mu    sync.Mutex
	index map[string]Sym
}

// NewSymbols returns a table that holds only the empty string.
func NewSymbols() *Symbols {
	t := &Symbols{}
	t.intern("")
	return t
}

var shardSeed = maphash.MakeSeed()

// shard returns the shard of s.
func (t *Symbols) shard(s string) *symbolShard {
	return &t.shards[maphash.String(shardSeed, s)%uint64(len(t.shards))]
}

// Intern returns the symbol of s.
func (t *Symbols) Intern(s string) Sym {
	sym, _ := t.intern(s)
	return sym
}

// InternAll sets each symbol to that of its name.
func (t *Symbols) InternAll(names map[*Sym]string) {
	for sym, name := range names {
		*sym = t.Intern(name)
	}
}

// intern is Intern; known reports whether s was interned before.
func (t *Symbols) intern(s string) (sym Sym, known bool) {
	shard := t.shard(s)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if sym, ok := shard.index[s]; ok {
		return sym, true
	}
	if shard.index == nil {
		shard.index = make(map[string]Sym)
	}
	sym = t.add(s)
	shard.index[s] = sym
	return sym, false
}

// add assigns the next symbol to a new string.
func (t *Symbols) add(s string) Sym {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rename != nil {
		s = t.rename(s)
	}
	t.names = append(t.names, s)
	return Sym(len(t.names) - 1)
}

// Rename makes Name and Names return rename(s) for strings s interned before and after. Intern and Lookup
// still use the original strings, so that looking up a string finds it. rename must not change its own
// results. It gets the results of earlier renames.
func (t *Symbols) Rename(rename func(string) string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, len(t.names)) // snapshots must not change
	for i, name := range t.names {
		names[i] = rename(name)
	}
	t.names = names
	if before := t.rename; before != nil {
		t.rename = func(s string) string { return rename(before(s)) }
	} else {
		t.rename = rename
	}
}

// Name returns the string of sym.
func (t *Symbols) Name(sym Sym) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.names[sym]
}

// Lookup returns the symbol of s if it was interned before.
func (t *Symbols) Lookup(s string) (Sym, bool) {
	shard := t.shard(s)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	sym, ok := shard.index[s]
	return sym, ok
}

// Len returns the number of symbols, the empty string included.
func (t *Symbols) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.names)
}

// Names returns a snapshot of all strings, indexed by Sym. It must not be
// modified.
func (t *Symbols) Names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.names[:len(t.names):len(t.names)]
}

// A SymbolCache makes interning lock-free for one goroutine and strings that it has seen before. It is not
// safe for concurrent use.
type SymbolCache struct {
	table  *Symbols
	local  map[string]interned
	recent [1 << recentBits]interned // by recentOf the string
}

// interned is a string with its symbol.
type interned struct {
	name string
	sym  Sym
}

// NewSymbolCache returns a cache in front of t.
func NewSymbolCache(t *Symbols) *SymbolCache {
	return &SymbolCache{table: t, local: make(map[string]interned)}
}

// maxCached limits a cache: beyond it, new strings go only to the shared table. Names repeat, so an input
// with more distinct names is noise.
const maxCached = 1 << 16

// Intern returns the symbol of b; b is copied if it is new.
func (c *SymbolCache) Intern(b []byte) Sym {
	recent := &c.recent[recentOf(b)]
	if string(b) == recent.name {
		return recent.sym // 0 is the empty string
	}
	in, ok := c.local[string(b)]
	if !ok {
		s := string(b)
		sym, known := c.table.intern(s)
		if in = (interned{s, sym}); known && len(c.local) < maxCached {
			c.local[s] = in // strings seen only once, such as names of requests, take no room here
		}
	}
	*recent = in
	return in.sym
}

const recentBits = 8

// recentOf hashes the length, the first, and the last bytes of a string, which is faster than hashing all
// of it: most strings are among the last few hundred.
func recentOf(b []byte) uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := uint64(len(b))
	switch n := len(b); {
	case n >= 8:
		h += binary.LittleEndian.Uint64(b)*odd ^ binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		h += uint64(binary.LittleEndian.Uint32(b))<<32 | uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		h += uint64(b[0])<<16 | uint64(b[n/2])<<8 | uint64(b[n-1])
	}
	return h * odd >> (64 - recentBits)
}

// A PerName caches the results of a function of names, which it calls once per name. It needs memory only
// for names that were asked for, and is not safe for concurrent use.
type PerName[T any] struct {
	syms  *Symbols
	look  func(name string) T
	pages []*namePage[T] // by symbol; nil if none of its names was asked for
}

const namesOfPage = 256

type namePage[T any] struct {
	known [namesOfPage]bool
	says  [namesOfPage]T
}

// EachName returns a cache of look for names in syms.
func EachName[T any](syms *Symbols, look func(name string) T) *PerName[T] {
	return &PerName[T]{syms: syms, look: look}
}

// Renamed returns a cache of the symbols of form(name).
func Renamed(syms *Symbols, form func(name string) string) *PerName[Sym] {
	return EachName(syms, func(name string) Sym { return syms.Intern(form(name)) })
}

// Of returns the function's result for the name of s.
func (n *PerName[T]) Of(s Sym) T {
	at, i := int(s/namesOfPage), s%namesOfPage
	if at >= len(n.pages) {
		n.pages = append(n.pages, make([]*namePage[T], at+1-len(n.pages))...)
	}
	page := n.pages[at]
	if page == nil {
		page = &namePage[T]{}
		n.pages[at] = page
	}
	if !page.known[i] {
		page.known[i], page.says[i] = true, n.look(n.syms.Name(s))
	}
	return page.says[i]
}
