// Package consequence says which findings explain others, as far as findings tell: by what they are about, where, and when.
// Package finders adds those that measurements tell.
package consequence
