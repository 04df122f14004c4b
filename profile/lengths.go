package profile

import (
	"strconv"
	"strings"
)

// Lengths are how long the sequences of a step are, summed up over its requests: those that are
// prefilled (context), and those that decode (generation). Tokens are computed in the step, and attend
// to keys, their own and earlier ones; pairs are the sum of tokens times keys of each request.
type Lengths struct {
	ContextTokens, ContextKeys, ContextSquares, ContextPairs             int64
	GenerationTokens, GenerationKeys, GenerationSquares, GenerationPairs int64
}

// parseLengths returns what the name of a step says of lengths, nil if it does not. Known are
//
//	execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)   vLLM
//	step[DECODE bs=64 g_sq=64 g_sk=70000 g_sqsq=64 g_sqsk=70000]                        SGLang; of context, c_sq=
func parseLengths(name string) *Lengths {
	if _, fields, ok := strings.Cut(name, "step["); ok {
		return fieldLengths(fields)
	}
	_, rest, ok := strings.Cut(name, "context_")
	if !ok {
		return nil
	}
	context, generation, ok := strings.Cut(rest, "generation_")
	if !ok {
		return nil
	}
	c, ok1 := sums(context)
	g, ok2 := sums(generation)
	if !ok1 || !ok2 {
		return nil
	}
	return &Lengths{c[0], c[1], c[2], c[3], g[0], g[1], g[2], g[3]}
}

// sums parses "32(sq32sk55086sqsq32sqsk55086)_".
func sums(s string) (n [4]int64, ok bool) {
	_, s, ok = strings.Cut(s, "(")
	if !ok {
		return n, false
	}
	for i, key := range [...]string{"sq", "sk", "sqsq", "sqsk"} {
		if s, ok = strings.CutPrefix(s, key); !ok {
			return n, false
		}
		end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			return n, false
		}
		var err error
		if n[i], err = strconv.ParseInt(s[:end], 10, 64); err != nil {
			return n, false
		}
		s = s[end:]
	}
	return n, true
}

// fieldLengths parses "DECODE bs=64 g_sq=64 g_sk=70000 ...]". Of requests of a kind that the step does not
// have, nothing is written.
func fieldLengths(fields string) *Lengths {
	var l Lengths
	places := map[string]*int64{"c_sq": &l.ContextTokens, "c_sk": &l.ContextKeys, "c_sqsq": &l.ContextSquares, "c_sqsk": &l.ContextPairs,
		"g_sq": &l.GenerationTokens, "g_sk": &l.GenerationKeys, "g_sqsq": &l.GenerationSquares, "g_sqsk": &l.GenerationPairs}
	found := map[string]bool{}
	for field := range strings.FieldsSeq(fields) {
		key, value, _ := strings.Cut(strings.TrimSuffix(field, "]"), "=")
		if at := places[key]; at != nil {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil
			}
			*at = n
			found[key[:1]] = true
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &l
}
