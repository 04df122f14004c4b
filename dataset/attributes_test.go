package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// randomList returns nested arguments of all kinds.
func randomList(r *rand.Rand, syms *trace.Symbols, keyed bool, depth int) (list trace.ArgList) {
	for range r.IntN(4) {
		key := trace.Sym(0)
		if keyed {
			key = syms.Intern(randomText(r))
		}
		switch r.IntN(8 - depth) {
		case 0:
			list = list.String(key, randomText(r))
		case 1:
			list = list.Int(key, int64(r.Uint64()))
		case 2:
			list = list.Uint(key, r.Uint64()|1<<63) // smaller values are stored as Int
		case 3:
			list = list.Float(key, []float64{0, -1, 1e300, 0.1, math.MaxInt64, r.NormFloat64(), math.Inf(1), math.Inf(-1)}[r.IntN(8)])
		case 4:
			list = list.Bool(key, r.IntN(2) == 0)
		case 5:
			list = list.Int(key, int64(r.IntN(5)))
		case 6:
			list = list.Array(key, randomList(r, syms, false, depth+1))
		case 7:
			list = list.Dict(key, randomList(r, syms, true, depth+1))
		}
	}
	return list
}

func randomText(r *rand.Rand) string {
	return []string{"", "rid", `a"b\c`, "zwei\nZeilen\x01", "grün 🙂", "{\"not\":[]}", "key.0"}[r.IntN(7)]
}

func encode(syms *trace.Symbols, all func(func(trace.Arg) bool)) []byte {
	e := encoder{symbol: syms.Name}
	return e.attributes(nil, all)
}

// Attributes survive a round trip byte for byte, and are JSON.
func TestAttributes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	syms := trace.NewSymbols()
	p := parser{syms: trace.NewSymbolCache(syms)}
	for range 3000 {
		list := randomList(r, syms, true, 0)
		text := encode(syms, list.All)
		back, err := p.attributes(nil, text)
		if err != nil || !bytes.Equal(back, list) {
			t.Fatalf("%s came back as %s (%v)", text, encode(syms, back.All), err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var object map[string]any
		if err := d.Decode(&object); len(text) > 0 && err != nil {
			t.Fatalf("%s is no JSON: %v", text, err)
		}
		if len(text) > 0 {
			cut := text[:r.IntN(len(text))]
			if _, err := p.attributes(nil, cut); err == nil && len(cut) > 0 {
				t.Fatalf("%s is cut off, and was read", cut)
			}
		}
	}
}

// Numbers that JSON cannot express and bytes that are not text survive, too.
func TestOddAttributes(t *testing.T) {
	syms := trace.NewSymbols()
	key := syms.Intern("key")
	list := trace.ArgList(nil).Float(key, math.NaN()).Bytes(key, []byte("\xff\xfe\x00"))
	text := encode(syms, list.All)
	p := parser{syms: trace.NewSymbolCache(syms)}
	back, err := p.attributes(nil, text)
	if got := fmt.Sprintf("%q", encode(syms, back.All)); err != nil || got != fmt.Sprintf("%q", text) {
		t.Errorf("%q came back as %s (%v)", text, got, err)
	}
}

// FuzzAttributes reads arbitrary data, and reads the result again.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[1.5,"x",{"c":null}],"d":-1e999}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		syms := trace.NewSymbols()
		p := parser{syms: trace.NewSymbolCache(syms)}
		list, err := p.attributes(nil, text)
		if err != nil {
			return
		}
		again, err := p.attributes(nil, encode(syms, list.All))
		if err != nil || !bytes.Equal(list, again) {
			t.Fatalf("%q was read as %q, and that as %q: %v", text, list, again, err)
		}
	})
}
