package profile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// ArgsMode selects the arguments of events to keep.
type ArgsMode uint8

const (
	ArgsAll ArgsMode = iota
	ArgsMin          // those that distinguish events of one name
	ArgsNone
)

// A Filter omits events while they are read. The zero value keeps all.
type Filter struct {
	Cats   []string       // categories to keep, regardless of case; nil is all
	Names  *regexp.Regexp // names to keep; nil is all
	MinDur int64          // ns; shorter slices are omitted, instants are not
	// From and To keep only events that overlap [From, To]; 0 is unbounded. They are times of the file's clock. If
	// a file has its base time after its events, Base must be given.
	From, To trace.Time
	Args     ArgsMode
	// ArgCats are the categories whose arguments are kept; nil is all.
	ArgCats []string
	// ArgNames are additional arguments that ArgsMin keeps.
	ArgNames []string
	// IndexOnly omits all events, and keeps the other tables.
	IndexOnly bool
	// CollectivesOnly, together with IndexOnly, means that of the other tables only the collectives are needed.
	// Formats may omit the others.
	CollectivesOnly bool
	// Fingerprint fills Profile.Fingerprint, regardless of the filter.
	Fingerprint bool
}

// KeepsKinds reports whether the filter keeps events of all kinds, though perhaps not of all times.
func (f *Filter) KeepsKinds() bool { return len(f.Cats) == 0 && f.Names == nil && f.MinDur == 0 }

// KeepsWork reports whether the filter keeps all work of devices.
func (f *Filter) KeepsWork() bool {
	if f.Names != nil || f.MinDur != 0 || f.From != 0 || f.To != 0 || f.IndexOnly {
		return false
	}
	return !slices.ContainsFunc(WorkCategories, func(c string) bool { return !f.KeepsCategory(c) })
}

// KeepsCategory reports whether the filter keeps events of a category, though perhaps not of all times and
// names.
func (f *Filter) KeepsCategory(category string) bool {
	return f.Cats == nil || slices.ContainsFunc(f.Cats, func(c string) bool { return strings.EqualFold(strings.TrimSpace(c), category) })
}

// Overlaps reports whether [from, to] overlaps the bounds of the filter.
func (f *Filter) Overlaps(from, to trace.Time) bool {
	return (f.From == 0 || to >= f.From) && (f.To == 0 || from <= f.To)
}

// Appender returns what adds arguments to args; nil if they are omitted.
func (f *Filter) Appender(args *trace.Args) *trace.ArgsAppender {
	if args == nil || f.Args == ArgsNone {
		return nil
	}
	return args.Appender()
}

// IsPossible reports whether an event can have a time: damaged rows have times beyond 2043, or long before 1970.
func IsPossible(t trace.Time) bool { return -1<<60 < t && t < 1<<61 }

// NoName is drawn for an event if the file has no name, or an empty one.
const NoName = "(no name)"

// A Keeper applies a filter to events, and tests each name and category only once. It is not safe for
// concurrent use.
type Keeper struct {
	f     *Filter
	cats  *trace.PerName[bool]
	names *trace.PerName[bool] // for Filter.Names, if set
}

// NewKeeper returns a keeper for a filter.
func NewKeeper(f *Filter, syms *trace.Symbols) *Keeper {
	k := &Keeper{f: f, cats: trace.EachName(syms, f.KeepsCategory)}
	if f.Names != nil {
		k.names = trace.EachName(syms, f.Names.MatchString)
	}
	return k
}

// Keeps reports whether the filter keeps an event with a duration.
func (k *Keeper) Keeps(category, name trace.Sym, from, to trace.Time) bool {
	return max(0, int64(to-from)) >= k.f.MinDur && k.Category(category) && k.Within(name, from, to)
}

// Category reports whether the filter keeps events of a category.
func (k *Keeper) Category(category trace.Sym) bool {
	return !k.f.IndexOnly && (k.f.Cats == nil || k.cats.Of(category))
}

// Within reports whether the filter keeps events with a name and a time, in categories that it keeps, however
// short they are.
func (k *Keeper) Within(name trace.Sym, from, to trace.Time) bool {
	return k.f.Overlaps(from, to) && (k.names == nil || k.names.Of(name))
}
