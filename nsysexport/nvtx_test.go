package nsysexport

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

const nvtxStartTime = 1_700_000_000_000_000_000

func nvtxDatabase(t *testing.T) string {
	const columns = `start, end, eventType, category, color, text, globalTid, endGlobalTid, textId, domainId,
		uint64Value, int64Value, doubleValue, jsonTextId, jsonText, binaryData`
	thread, other := tid(5, 6), tid(7, 8)
	return database(t, schema2024+fmt.Sprintf(`
		INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (%[3]d, '', '');
		INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_CONFIG_TIME_SHIFT', '100');
		INSERT INTO ANALYSIS_DETAILS VALUES (0, 5000, 100, 5100);
		INSERT INTO StringIds VALUES (3, 'registered'), (4, '{"Rank": 2}'), (5, 'by id');
		CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, flags, type, name, description, arrayOrUnionDetail, offset);
		INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES
			(1, 16777218, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL), (1, 16777218, 1, NULL, 5, 'Rank', NULL, NULL, 8),
			(1, 16777218, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL), (1, 16777218, 1, NULL, 5, 'Rank', NULL, NULL, 8),
			(1, 16777218, 2, NULL, 5, 'beyond', NULL, NULL, 9223372036854775807);
		INSERT INTO NVTX_EVENTS (`+columns+`) VALUES
			(1100, 1200, 59, 9, 4278255360, 'push', %[1]d, NULL, NULL, 1, NULL, -16, NULL, NULL, NULL, NULL),
			(1100, 1200, 59, 9, NULL, NULL, %[2]d, NULL, 3, 1, NULL, NULL, 0.5, NULL, NULL, NULL),
			(1300, 5100, 59, NULL, NULL, 'never popped', %[1]d, NULL, NULL, 0, 18446744073709551615, NULL, NULL, NULL, NULL, NULL),
			(1300, NULL, 60, NULL, NULL, 'never ended', %[1]d, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL),
			(1300, 1400, 60, NULL, NULL, 'crosses', %[1]d, %[1]d + 1, NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL),
			(1500, NULL, 34, NULL, NULL, NULL, %[1]d, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
			(1600, 1700, 59, NULL, NULL, 'json', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL,
				'{"NCCL communicator ID": 18446744073709551615, "Rank": 3, "x": [1], "s": "t", "f": 1.5, "n": null, "b": true}', NULL),
			(1600, 1700, 59, NULL, NULL, 'json by id', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, 4, NULL, NULL),
			(1600, 1700, 59, NULL, NULL, 'binary', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL,
				x'0100000000000000020000010000000010000000000000002000000000000000FFFFFFFFFFFFFFFFFEFFFFFF00000000'),
			(1600, 1700, 59, NULL, NULL, 'hex', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL,
				'0100000000000000020000010000000010000000000000002000000000000000FFFFFFFFFFFFFFFFFEFFFFFF00000000'),
			(1600, 1700, 59, NULL, NULL, 'no json', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, '[1', NULL),
			(1600, 1700, 99, NULL, NULL, 'unknown kind', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL),
			(-9000, NULL, 75, NULL, NULL, 'NCCL', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL),
			(-9000, NULL, 75, NULL, NULL, 'other', %[2]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL),
			(-9000, NULL, 33, 9, NULL, 'category', %[1]d, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL),
			(-9000, NULL, 39, NULL, NULL, NULL, %[1]d, NULL, 5, 0, NULL, NULL, NULL, NULL, NULL, NULL);`,
		thread, other, int64(nvtxStartTime)))
}

func TestRanges(t *testing.T) {
	e, names, diags := read(t, nvtxDatabase(t))
	got := map[string]Range{}
	for _, r := range e.Ranges {
		got[names.Name(r.Text)] = r
	}
	if len(got) != 11 {
		t.Fatalf("%d ranges", len(got))
	}
	if r := got["push"]; r.Start != nvtxStartTime+1000 || r.End != r.Start+100 || r.PID != 5 || r.TID != 6 || r.EndTID != -1 ||
		names.Name(r.Domain) != "NCCL" || names.Name(r.Category) != "category" || r.CategoryID != 9 || r.Color != 0xff00ff00 ||
		r.Kind != MarkPushPop || r.PayloadKind != PayloadInt || int64(r.Payload) != -16 || r.Open {
		t.Errorf("push: %+v", r)
	}
	if r := got["registered"]; names.Name(r.Domain) != "other" || r.Category != 0 || r.CategoryID != 9 ||
		r.PayloadKind != PayloadFloat || math.Float64frombits(r.Payload) != 0.5 {
		t.Errorf("registered: %+v", r)
	}
	for _, name := range []string{"never popped", "never ended"} {
		if r := got[name]; !r.Open || r.End != nvtxStartTime+5000 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := got["crosses"]; r.Kind != MarkStartEnd || r.EndTID != 7 || names.Name(r.Domain) != "domain 2" {
		t.Errorf("crosses: %+v %s", r, names.Name(r.Domain))
	}
	if r := got[""]; r.Kind != MarkInstant || r.End != r.Start || r.Domain != 0 || r.Open {
		t.Errorf("mark: %+v", r)
	}
	codes := ""
	for _, d := range diags {
		codes += d.Code + " "
	}
	if codes != "nsys-nvtx-kind nsys-payload " {
		t.Errorf("diagnostics %v", diags)
	}
}

func TestPayloads(t *testing.T) {
	e, names, _ := read(t, nvtxDatabase(t))
	if want := []Comm{{0, 5, 2, -1, -1}, {math.MaxUint64, 5, 3, -1, -1}}; !slices.Equal(e.Comms, want) {
		t.Errorf("communicators %+v, want %+v", e.Comms, want)
	}
	for _, r := range e.Ranges {
		text := ""
		for a := range names.args.All(r.Args) {
			text += names.Name(a.Key) + "="
			switch a.Kind {
			case trace.ArgInt:
				text += fmt.Sprint(a.Int())
			case trace.ArgUint:
				text += fmt.Sprint(a.Uint())
			case trace.ArgFloat:
				text += fmt.Sprint(a.Float())
			case trace.ArgBool:
				text += fmt.Sprint(a.Bool())
			default:
				text += string(a.Bytes())
			}
			text += ";"
		}
		want := map[string]string{
			"json":       "NCCL communicator ID=18446744073709551615;Rank=3;x=[1];s=t;f=1.5;b=true;",
			"json by id": "Rank=2;",
			"binary":     "NCCL communicator ID=18446744073709551615;Rank=-2;",
			"hex":        "NCCL communicator ID=18446744073709551615;Rank=-2;",
		}[names.Name(r.Text)]
		if text != want {
			t.Errorf("%s: %s, want %s", names.Name(r.Text), text, want)
		}
	}
}

// Threads that name themselves are known.
func TestNamedThreads(t *testing.T) {
	s, err := Open(nvtxDatabase(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.NamedThreads(); len(got) != 1 || got[0] != (Thread{5, 6, "by id"}) {
		t.Errorf("%v", got)
	}
	if e := s.ReadAll(); len(e.Threads) != 1 || e.Threads[0].Name != "by id" {
		t.Errorf("%v", e.Threads)
	}
}
