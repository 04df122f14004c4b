package trace

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

// FuzzRank parses ranks that users write: printing and parsing the result gives it again, and
// numbers equal their digits.
func FuzzRank(f *testing.F) {
	for _, text := range []string{"TP0", "tp0-dp1", "EP3-PP2-DP1-TP0", "DP1 TP0", "rank 7", "7", "TP32767", "2147483647", "TP32768", "TP+1", "TP0-TP1", "-", "TP", "0-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRank(text)
		if err != nil {
			if r != NoRank || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
				t.Fatalf("%q: %+v, %v", text, r, err)
			}
			return
		}
		parts := 1 + strings.Count(text, "-") + strings.Count(strings.TrimPrefix(strings.ToUpper(text), "RANK "), " ")
		if r.Known() != parts || strings.ContainsAny(text, "+") {
			t.Fatalf("%q has %d parts, and is read as %+v", text, parts, r)
		}
		if r.Global >= 0 && parts > 1 {
			r.Global = -1 // String leaves it out
		}
		again, err := ParseRank(strings.ToLower(r.String()))
		if err != nil || again != r {
			t.Fatalf("%q is %+v, which is printed as %q and read as %+v, %v", text, r, r, again, err)
		}
		if !r.Matches(again) || r.Contradicts(again) {
			t.Fatalf("%+v and itself", r)
		}
	})
}

// FuzzArgs puts arbitrary argument lists into an arena: each comes back unchanged, whatever lies
// beside it.
func FuzzArgs(f *testing.F) {
	for n := range 6 {
		data := make([]byte, 100*n)
		for i := range data {
			data[i] = byte(i*i + n)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a := NewArgs()
		appenders := []interface{ Put([]byte) ArgsID }{a, a.Appender(), a.Appender()}
		d := &draw{data: data}
		var ids []ArgsID
		var want []string
		for bytes := 0; len(d.data) > 0 && bytes < 4<<20; {
			list, text := d.list(2)
			if len(ids) > 0 && d.byte() < 50 { // extends an earlier list
				other := d.byte() % len(ids)
				list, text = list.Extend(ids[other]), text+want[other]
			}
			bytes += len(list)
			ids, want = append(ids, appenders[d.byte()%3].Put(list)), append(want, text)
		}
		for i, id := range ids {
			if got := listText(a.All(id)); got != want[i] {
				t.Fatalf("list %d of %d is %.200s, want %.200s", i, len(ids), got, want[i])
			}
		}
		if a.Dropped() != 0 {
			t.Fatalf("%d lists are left out", a.Dropped())
		}
	})
}

// A draw generates arguments from bytes.
type draw struct{ data []byte }

func (d *draw) byte() int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b)
}

func (d *draw) number() uint64 {
	var b [8]byte
	d.data = d.data[copy(b[:d.byte()%9], d.data):]
	return binary.LittleEndian.Uint64(b[:])
}

// list returns an encoded list of arguments, and its text.
func (d *draw) list(depth int) (l ArgList, text string) {
	for range d.byte() % 5 {
		key, n := Sym(d.number()), d.number()
		text += fmt.Sprint(key, "=")
		switch kind := d.byte(); {
		case kind < 40:
			l, text = l.Int(key, int64(n)), text+fmt.Sprint(int64(n))
		case kind < 80:
			l, text = l.Uint(key, n), text+fmt.Sprint(n)
		case kind < 100:
			l, text = l.Float(key, math.Float64frombits(n)), text+fmt.Sprint(math.Float64frombits(n))
		case kind < 110:
			l, text = l.Bool(key, n%2 == 1), text+fmt.Sprint(n%2 == 1)
		case kind < 130 && depth > 0:
			inner, is := d.list(depth - 1)
			l, text = l.Array(key, inner), text+"["+is+"]"
		case kind < 150 && depth > 0:
			inner, is := d.list(depth - 1)
			l, text = l.Dict(key, inner), text+"{"+is+"}"
		default:
			size := int(n % 64)
			if kind == 255 { // nearly as long as a block
				size += maxInBlock - 32
			}
			value := strings.Repeat(string(byte(kind)), size)
			l, text = l.String(key, value), text+value
		}
		text += " "
	}
	return l, text
}

// listText formats arguments.
func listText(all func(func(Arg) bool)) (text string) {
	for a := range all {
		text += fmt.Sprint(a.Key, "=")
		switch a.Kind {
		case ArgInt:
			text += fmt.Sprint(a.Int())
		case ArgUint:
			text += fmt.Sprint(a.Uint())
		case ArgFloat:
			text += fmt.Sprint(a.Float())
		case ArgBool:
			text += fmt.Sprint(a.Bool())
		case ArgArray:
			text += "[" + listText(a.Elems) + "]"
		case ArgDict:
			text += "{" + listText(a.Elems) + "}"
		default:
			text += string(a.Bytes())
		}
		text += " "
	}
	return text
}
