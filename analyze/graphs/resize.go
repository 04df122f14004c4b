package graphs

import (
	"regexp"
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// A resizer gives the operators of a pass the sizes that they had in a graph of another batch.
type resizer struct {
	syms  *trace.Symbols
	known map[sized]*Capture
	clear map[*Capture]bool // whether the tokens of a pass are no size of its model
}

// sized is a pass in the sizes of a step.
type sized struct {
	pass          *Capture
	tokens, batch int64
}

// resized returns a pass as one of so many tokens and sequences. Where either number of tokens is not
// known, or that of the pass may as well be a size of the model, its operators have no shapes.
func (r *resizer) resized(x *Capture, tokens, batch int64) *Capture {
	key := sized{x, tokens, batch}
	if c := r.known[key]; c != nil {
		return c
	}
	c := *x
	c.Tokens, c.batch, c.sizes = tokens, batch, map[trace.Sym]trace.Sym{}
	for i := range x.Frames {
		shapes := x.Frames[i].Shapes
		if _, ok := c.sizes[shapes]; ok || shapes == 0 {
			continue
		}
		c.sizes[shapes] = 0
		if r.isClear(x) && tokens > 0 {
			c.sizes[shapes] = r.syms.Intern(resize(r.syms.Name(shapes), x.Tokens, x.batch, tokens, batch))
		}
	}
	r.known[key] = &c
	return &c
}

var (
	firstSize  = regexp.MustCompile(`\[\d+`)
	otherSizes = regexp.MustCompile(`, ?(\d+)`)
)

// isClear reports whether no size behind the first one of any input is a multiple of the tokens of the
// pass: then what begins with a multiple is of tokens.
func (r *resizer) isClear(x *Capture) bool {
	known, ok := r.clear[x]
	if ok {
		return known
	}
	is := x.Tokens > 1
	seen := map[trace.Sym]bool{0: true}
	for i := range x.Frames {
		sym := x.Frames[i].Shapes
		if !is || seen[sym] {
			continue
		}
		seen[sym] = true
		for _, m := range otherSizes.FindAllStringSubmatch(r.syms.Name(sym), -1) {
			if n, _ := strconv.ParseInt(m[1], 10, 64); n > 0 && n%x.Tokens == 0 {
				is = false
			}
		}
	}
	r.clear[x] = is
	return is
}

// resize puts the tokens and sequences of one step in place of those of another, where inputs begin
// with them: "[[15360, 4096], [4096, 6144]]" to "[[32, 4096], [4096, 6144]]".
func resize(shapes string, tokens, batch, toTokens, toBatch int64) string {
	return firstSize.ReplaceAllStringFunc(shapes, func(text string) string {
		n, err := strconv.ParseInt(text[1:], 10, 64)
		switch {
		case err != nil:
		case n > 0 && n%tokens == 0:
			return "[" + strconv.FormatInt(n/tokens*toTokens, 10)
		case n == batch && batch > 1 && toBatch > 0:
			return "[" + strconv.FormatInt(toBatch, 10)
		}
		return text
	})
}
