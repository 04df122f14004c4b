package profile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// ArgsMode says which arguments of events are kept.
type ArgsMode uint8

const (
	ArgsAll ArgsMode = iota
	ArgsMin          // those that tell events of one name apart
	ArgsNone
)

// A Filter leaves events out while they are read. The zero value keeps all.
type Filter struct {
	Cats   []string       // categories to keep, regardless of case; nil is all
	Names  *regexp.Regexp // names to keep; nil is all
	MinDur int64          // ns; shorter slices are left out, instants are not
	// From and To bound what is kept to events that overlap [From, To]; 0 is open.
	// They are times of the file's clock, and need Base to be right where a file
	// tells its base time behind its events.
	From, To trace.Time
	Args     ArgsMode
	// ArgCats are the categories of which arguments are kept; nil is all.
	ArgCats []string
	// ArgNames are arguments that ArgsMin keeps besides.
	ArgNames []string
	// IndexOnly leaves all events out: what remains are the other tables.
	IndexOnly bool
	// CollectivesOnly, beside IndexOnly, tells that of the other tables only the collectives are
	// asked for. Formats may leave the others out.
	CollectivesOnly bool
	// Fingerprint fills Profile.Fingerprint, whatever the filter leaves out.
	Fingerprint bool
}

// KeepsKinds reports whether the filter keeps events of all kinds, if not of all times.
func (f *Filter) KeepsKinds() bool { return len(f.Cats) == 0 && f.Names == nil && f.MinDur == 0 }

// KeepsWork reports whether the filter keeps all that devices did.
func (f *Filter) KeepsWork() bool {
	if f.Names != nil || f.MinDur != 0 || f.From != 0 || f.To != 0 || f.IndexOnly {
		return false
	}
	return !slices.ContainsFunc(WorkCategories, func(c string) bool { return !f.KeepsCategory(c) })
}

// KeepsCategory reports whether the filter keeps events of a category, if not of all times and names.
func (f *Filter) KeepsCategory(category string) bool {
	return f.Cats == nil || slices.ContainsFunc(f.Cats, func(c string) bool { return strings.EqualFold(strings.TrimSpace(c), category) })
}

// Overlaps reports whether some time is within the bounds of the filter, in part at least.
func (f *Filter) Overlaps(from, to trace.Time) bool {
	return (f.From == 0 || to >= f.From) && (f.To == 0 || from <= f.To)
}

// A Keeper tells which events a filter keeps, and looks at each name and category once. It is not
// safe for concurrent use.
type Keeper struct {
	f     *Filter
	cats  *trace.PerName[bool]
	names *trace.PerName[bool] // by Filter.Names, if there is one
}

// NewKeeper returns one for a filter.
func NewKeeper(f *Filter, syms *trace.Symbols) *Keeper {
	k := &Keeper{f: f, cats: trace.EachName(syms, f.KeepsCategory)}
	if f.Names != nil {
		k.names = trace.EachName(syms, f.Names.MatchString)
	}
	return k
}

// Keeps reports whether the filter keeps an event that takes time.
func (k *Keeper) Keeps(category, name trace.Sym, from, to trace.Time) bool {
	return max(0, int64(to-from)) >= k.f.MinDur && k.Category(category) && k.Within(name, from, to)
}

// Category reports whether it keeps events of a category.
func (k *Keeper) Category(category trace.Sym) bool {
	return !k.f.IndexOnly && (k.f.Cats == nil || k.cats.Of(category))
}

// Within reports whether it keeps events of a name and a time, of categories that it keeps,
// however short they are.
func (k *Keeper) Within(name trace.Sym, from, to trace.Time) bool {
	return k.f.Overlaps(from, to) && (k.names == nil || k.names.Of(name))
}
