package logline

import (
	"math/bits"
	"slices"
)

// A WordSet finds which of at most [setWords] words, of at least three bytes each, occur in a text, in one
// pass.
type WordSet struct {
	words []string
	masks [3][256]uint64 // by place and byte: the words with that byte at that place
}

// NewWordSet returns a set of words.
func NewWordSet(words ...string) *WordSet {
	s := &WordSet{words: words}
	for i, w := range words {
		for k := range s.masks {
			s.masks[k][w[k]] |= 1 << i
		}
	}
	return s
}

// In returns a bit for each word that occurs in b.
func (s *WordSet) In(b []byte) (found uint64) {
	for i := 0; i+2 < len(b); i++ {
		for m := s.masks[0][b[i]] & s.masks[1][b[i+1]] & s.masks[2][b[i+2]] &^ found; m != 0; m &= m - 1 {
			k := bits.TrailingZeros64(m)
			if w := s.words[k]; len(b)-i >= len(w) && string(b[i:i+len(w)]) == w {
				found |= 1 << k
			}
		}
	}
	return found
}

// setWords is the largest number of words in a [WordSet].
const setWords = 64

// A WordList is a list of any number of words.
type WordList []*WordSet

// NewWordList returns a list of words.
func NewWordList(words ...string) (l WordList) {
	for chunk := range slices.Chunk(words, setWords) {
		l = append(l, NewWordSet(chunk...))
	}
	return l
}

// First returns the index of the first word of the list that occurs in b; -1 if there is none.
func (l WordList) First(b []byte) int {
	for i, s := range l {
		if found := s.In(b); found != 0 {
			return i*setWords + bits.TrailingZeros64(found)
		}
	}
	return -1
}
