package envelope

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// Spilled runs give the same order as sorting all entries in memory.
func TestSorterRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var held, packed sorter
	for i := range 3000 {
		at := int64(1e18) + int64(i/3)
		if i%2 == 1 {
			at = 2e18 - int64(i/4) // newest first within the pod
		}
		e := entry{pod: fmt.Sprint("pod-", i%2), unit: "u: ", text: fmt.Sprint("line ", i), at: at, local: i%2 == 1}
		if err := held.add(e); err != nil {
			t.Fatal(err)
		}
		packed.add(e)
		if random.IntN(300) == 0 {
			if err := packed.pack(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(packed.runs) < 3 {
		t.Fatalf("%d runs", len(packed.runs))
	}
	a, err := held.all()
	if err != nil {
		t.Fatal(err)
	}
	b, err := packed.all()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		x, errX := a()
		y, errY := b()
		if errX != errY {
			t.Fatalf("entry %d: %v, and %v of runs", i, errX, errY)
		}
		if errX == io.EOF {
			if i != 3000 {
				t.Errorf("%d entries", i)
			}
			break
		}
		if *x != *y {
			t.Fatalf("entry %d: %+v, and %+v of runs", i, x, y)
		}
	}
}

// Damage costs only the damaged record, in documents read whole and in those read in parts.
func TestCollectedDamage(t *testing.T) {
	good := func(i int) string {
		return fmt.Sprintf(`{"insertId":"%d","textPayload":"line %d {\"a\": [1]} %s","timestamp":"2026-08-22T14:%02d:%02dZ"}`, i, i, strings.Repeat("x", 300), i/60%60, i%60)
	}
	for _, n := range []int{50, 3500} {
		for name, bad := range map[string]string{
			"escape":        `{"insertId":"x","textPayload":"a \q b","timestamp":"2026-08-22T14:00:00Z"}`,
			"quote":         `{"insertId":"x","textPayload":"a" b","timestamp":"2026-08-22T14:00:00Z"}`,
			"no colon":      `{"insertId" "x"}`,
			"half a record": `{"insertId":"x"}, {"textPayload":5}`, // an incomplete record without a message is not damage
			"cut":           ``,
		} {
			var list []string
			for i := range n {
				if i == n/2 && bad != "" {
					list = append(list, bad)
				}
				list = append(list, good(i))
			}
			data := "[" + strings.Join(list, ",\n") + "]\n"
			want := n
			if bad == "" {
				data, want = data[:len(data)-200], n-1
			}
			s, err := Open(name, strings.NewReader(data))
			if err != nil || s.Outer != "collected" {
				t.Fatalf("%s: not recognized: %v", name, err)
			}
			got, err := io.ReadAll(s)
			if lines := strings.Count(string(got), "\n"); lines < want-1 || lines > want {
				t.Errorf("%s of %d: %d lines", name, n, lines)
			}
			if (err == nil) != (name == "half a record") {
				t.Errorf("%s of %d: %v", name, n, err)
			}
		}
	}
}

// Loki streams longer than the read buffer keep their pod.
func TestLongStreams(t *testing.T) {
	var values []string
	for i := range 9000 {
		values = append(values, fmt.Sprintf(`["%d","[2026-08-22 14:03:05 TP0] %s"]`, 1787407386000000000-i, strings.Repeat("y", 200)))
	}
	stream := func(pod string) string {
		return `{"stream":{"pod":"` + pod + `"},"values":[` + strings.Join(values, ",") + `]}`
	}
	s, err := Open("x", strings.NewReader(`{"status":"success","data":{"resultType":"streams","result":[`+stream("a")+","+stream("b")+`],"stats":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"a", "b"} {
		if n := strings.Count(string(got), "[pod/"+pod+"] 2026-08-22T14:03:0"); n != 9000 {
			t.Errorf("%d lines of %s", n, pod)
		}
	}
}

// An unclosed quote costs its row.
func TestCSVDamage(t *testing.T) {
	s, err := Open("x", strings.NewReader("Time,Line,pod\n2026-08-22T14:03:05Z,\"one\n  more\",a\n2026-08-22T14:03:06Z,\"two,a\n2026-08-22T14:03:07Z,\"three, \"\"3\"\"\",a\n2026-08-22T14:03:08Z,four,a\n2026-08-22T14:03:09Z,\"fi"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	if want := "[pod/a] 2026-08-22T14:03:05Z one\n[pod/a] 2026-08-22T14:03:05Z   more\n[pod/a] 2026-08-22T14:03:07Z three, \"3\"\n[pod/a] 2026-08-22T14:03:08Z four\n"; string(got) != want {
		t.Errorf("got\n%s", got)
	}
	if err == nil || !strings.Contains(err.Error(), "2 rows of the table") {
		t.Error(err)
	}
}
