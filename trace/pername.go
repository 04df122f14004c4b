package trace

// A PerName holds what a function says of names, each of which it looks at once. It takes memory for
// those that are asked for, and is not safe for concurrent use.
type PerName[T any] struct {
	syms  *Symbols
	look  func(name string) T
	pages []*namePage[T] // by symbol; nil where none was asked for
}

const namesOfPage = 256

type namePage[T any] struct {
	known [namesOfPage]bool
	says  [namesOfPage]T
}

// EachName returns what look says of names among syms.
func EachName[T any](syms *Symbols, look func(name string) T) *PerName[T] {
	return &PerName[T]{syms: syms, look: look}
}

// Renamed returns the symbols of the names that form makes of names.
func Renamed(syms *Symbols, form func(name string) string) *PerName[Sym] {
	return EachName(syms, func(name string) Sym { return syms.Intern(form(name)) })
}

// Of returns what the function says of the name of s.
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
