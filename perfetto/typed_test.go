package perfetto

import (
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

// Files that are opened together share the numbers of fields and words. Append new ones, and pin
// the new length and sum.
func TestNumbersOfFieldsStay(t *testing.T) {
	const rows, enum = 55, 51
	if sum := crc32.ChecksumIEEE(fmt.Append(nil, typedArgs[:rows], words[:enum])); sum != 0x2a6a9988 {
		t.Errorf("a row was moved, changed, or removed: checksum %#x", sum)
	}
	if len(typedArgs) != rows || len(words) != enum {
		t.Errorf("%d rows and %d words, of which %d and %d are pinned", len(typedArgs), len(words), rows, enum)
	}
	if len(wordNumbers) != len(words) || len(typedArgs) > 255 {
		t.Error("a word is there twice, or there are too many rows")
	}
}

// typedModel has a slice for each typed argument with each of many valid and invalid values; names
// are those of the arguments.
func typedModel(names []string) *trace.Trace {
	b := trace.NewBuilder(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	lane := b.Track(trace.Track{Name: b.Intern("lane")})
	text := func(s string) trace.ArgList { return trace.ArgList(nil).String(0, s) }
	ints := trace.ArgList(nil).Int(0, 128).Int(0, 0).Int(0, -1)
	values := []func(trace.ArgList, trace.Sym) trace.ArgList{
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Int(k, -3) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Int(k, 1<<62) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Uint(k, 1<<63) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Float(k, 0.75) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Bool(k, true) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.String(k, "") },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.String(k, "7") },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.String(k, "c10::BFloat16") },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.String(k, "no word") },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.String(k, "\xff") },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Array(k, nil) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Array(k, ints) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Array(k, ints.String(0, "x")) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Array(k, trace.ArgList(nil).Array(0, ints)) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList {
			return l.Array(k, text("").String(0, "Scalar").String(0, ""))
		},
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Array(k, text("1").String(0, "1e-05")) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Array(k, text("").String(0, "\xff")) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Array(k, text("a text that is long")) },
		func(l trace.ArgList, k trace.Sym) trace.ArgList { return l.Dict(k, text("x").Int(b.Intern("grid"), 3)) },
	}
	other := b.Intern("other")
	for i, name := range names {
		for j, value := range values {
			args := value(trace.ArgList(nil).Int(other, int64(i)), b.Intern(name))
			args = args.Int(b.Intern(name), 5) // the first counts
			b.Slice(trace.Slice{Time: trace.Time(i*len(values) + j), Dur: 1, Track: lane, Args: b.Args().Put(args)}, 0)
		}
	}
	return b.Finish()
}

func typedNames() (names []string) {
	for _, a := range typedArgs {
		names = append(names, a.name)
	}
	return names
}

// Values that a typed argument cannot hold become annotations; nothing is lost.
func TestTypedArgumentsComeBack(t *testing.T) {
	tr := typedModel(typedNames())
	compare(t, tr, roundTrip(t, tr))
}

// trace_processor treats typed arguments like others.
func TestTypedArgumentsImport(t *testing.T) {
	processor := readback.Processor(t)
	tr := typedModel(typedNames())
	data := encode(t, tr)
	readback.CheckImport(t, processor, data)
	var want []string
	for i := 1; i < len(tr.Slices); i++ {
		args := readback.Args(tr, tr.Slices[i].Args, 0)
		for _, name := range slices.Sorted(maps.Keys(args)) {
			want = append(want, rowsOf(fmt.Sprintf("%d,debug.%s", tr.Slices[i].Time, name), "debug."+name, args[name])...)
		}
	}
	readback.CheckRows(t, processor, data, `SELECT s.ts || ',' || key || ',' || flat_key || ',' || value_type || ',' ||
coalesce(string_value, int_value, real_value) AS row FROM slice s JOIN args USING (arg_set_id)`, want)
}

// rowsOf returns the rows that a value adds to the arguments table.
func rowsOf(key, flat string, value any) (rows []string) {
	row := func(kind string, v any) []string {
		return []string{fmt.Sprintf("%q", fmt.Sprintf("%s,%s,%s,%v", key, flat, kind, v))}
	}
	switch v := value.(type) {
	case int64:
		return row("int", v)
	case uint64:
		return row("uint", int64(v))
	case float64:
		return row("real", v)
	case bool:
		return row("bool", map[bool]int{true: 1}[v])
	case string:
		return row("string", v)
	case []any:
		for i, e := range v {
			rows = append(rows, rowsOf(fmt.Sprintf("%s[%d]", key, i), flat, e)...)
		}
	case map[string]any:
		for name, e := range v {
			rows = append(rows, rowsOf(key+"."+name, flat+"."+name, e)...)
		}
	}
	return rows
}
