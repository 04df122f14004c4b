package reader_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/perfetto/reader"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"google.golang.org/protobuf/encoding/protowire"
)

// msg encodes pairs of a field number and a value: a number, a string, or
// another message.
func msg(pairs ...any) (b []byte) {
	for pair := range slices.Chunk(pairs, 2) {
		field := protowire.Number(pair[0].(int))
		switch v := pair[1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
		case float64:
			b = protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
		}
	}
	return b
}

// packetOf returns a packet of the sequence with a track event.
func packetOf(event ...any) []byte { return msg(8, 5, 10, 1, 11, msg(event...)) }

var (
	clockAt = func(id, at int) []byte { return msg(1, id, 2, at) }
	start   = msg(10, 1, 13, 1, 59, msg(58, 64),
		6, msg(1, clockAt(1, 100), 1, clockAt(6, 100), 1, msg(1, 64, 2, 100, 3, 1), 2, 1),
		12, msg(2, msg(1, 1, 2, "name"), 3, msg(1, 1, 2, "key")))
	lane      = msg(60, msg(1, 1, 2, "lane", 12, 0, 15, 2))
	count     = msg(60, msg(1, 2, 2, "counter", 8, msg(), 12, 1, 15, 2))
	beginName = packetOf(9, 1, 11, 1, 10, 1)
	endLane   = packetOf(9, 2, 11, 1)
)

func TestDecode(t *testing.T) {
	got, err := readback.Decode(msg(1, start, 1, lane, 1, beginName, 1, endLane))
	if err != nil {
		t.Fatal(err)
	}
	if want := "lane\n  5 +5 name\n"; got.Text() != want {
		t.Errorf("got %q, want %q", got.Text(), want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		packets [][]byte
		err     string
	}{
		{"begin without end", [][]byte{start, lane, beginName}, "never ends"},
		{"end without begin", [][]byte{start, lane, endLane}, "closes nothing"},
		{"events before the sequence starts", [][]byte{lane, beginName}, "flags 0"},
		{"cleared twice", [][]byte{start, start}, "flags 1; want 1 with 0"},
		{"no sequence id", [][]byte{start, lane, msg(8, 5, 11, msg(9, 2, 11, 1))}, "sequence 0"},
		{"undeclared track", [][]byte{start, beginName}, "not declared"},
		{"undefined name", [][]byte{start, lane, packetOf(9, 1, 11, 1, 10, 7)}, "string 7"},
		{"id defined twice", [][]byte{start, msg(10, 1, 12, msg(2, msg(1, 1, 2, "other")))}, "string 1 of field 2"},
		{"missing parent", [][]byte{msg(60, msg(1, 2, 5, 9, 12, 0, 15, 2))}, "parent 9"},
		{"tracks in a loop", [][]byte{msg(60, msg(1, 2, 5, 3, 11, 3, 12, 0, 15, 2)), msg(60, msg(1, 3, 5, 2, 11, 3, 12, 0, 15, 2))}, "loop"},
		{"equal ranks", [][]byte{lane, msg(60, msg(1, 2, 12, 0, 15, 2))}, "rank 0"},
		{"counter with two values", [][]byte{start, lane, count, packetOf(9, 4, 11, 2, 30, 1, 44, 2.5)}, "two values"},
		{"value on a lane", [][]byte{start, lane, packetOf(9, 4, 11, 1, 30, 1)}, "type 4"},
		{"counter without a value", [][]byte{start, lane, count, packetOf(9, 4, 11, 2)}, "without a value"},
		{"flow with one end", [][]byte{start, lane, packetOf(9, 1, 11, 1, 10, 1, 36, 9), endLane}, "one end"},
		{"flow ended first", [][]byte{start, lane, packetOf(9, 1, 11, 1, 10, 1, 42, 9), endLane}, "before it is opened"},
		{"argument without a value", [][]byte{start, lane, packetOf(9, 1, 11, 1, 10, 1, 4, msg(1, 1)), endLane}, "no value"},
		{"unknown field", [][]byte{msg(99, 1)}, "field 99"},
		{"clocks that differ", [][]byte{msg(10, 1, 13, 1, 59, msg(58, 64), 6, msg(1, clockAt(1, 100), 1, clockAt(6, 101), 2, 1))}, "clock 6"},
	} {
		var file []byte
		for _, p := range c.packets {
			file = append(file, msg(1, p)...)
		}
		if _, err := readback.Decode(file); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.err)
		}
	}
}

// In files of Perfetto's SDK, every packet with a time advances the incremental clock of its
// sequence, including track descriptors; clock snapshots do not.
func TestOthersAdvancesIncrementalClocks(t *testing.T) {
	const microseconds = 1000
	snapshot := msg(8, 7, 10, 2, 13, 1, 59, msg(58, 64, 11, msg(11, 1)), 6,
		msg(1, clockAt(6, 9_000_000), 1, msg(1, 64, 2, 9_000, 3, 1, 4, microseconds)))
	descriptor := msg(8, 4, 10, 2, 60, msg(1, 1, 2, "lane"))
	event := func(after int) []byte { return msg(8, after, 10, 2, 11, msg(9, 3, 23, "x")) }
	boot := msg(8, 9_100_000, 58, 6, 10, 2, 11, msg(9, 3, 23, "x")) // has its own clock, so it does not advance the incremental one
	elsewhere := msg(8, 30, 10, 3, 60, msg(1, 2, 2, "other"))
	var got []int64
	for p, err := range reader.Others(bytes.NewReader(msg(1, snapshot, 1, event(1), 1, descriptor, 1, boot, 1, elsewhere, 1, event(2)))) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Event != nil {
			got = append(got, p.Event.Time)
		}
	}
	if want := []int64{9_001_000, 9_100_000, 9_007_000}; !slices.Equal(got, want) {
		t.Errorf("events at %d, want %d", got, want)
	}
}
