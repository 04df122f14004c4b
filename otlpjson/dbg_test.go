package otlpjson
import ("testing";"testing/iotest";"regexp";"strings";"fmt";"math/rand/v2";"os";"strconv")
func dbgBuild(seed uint64) string {
	corpus := strings.Join(damageDocs(), "\n") + "\n" + indented(doc(span("h"))) + `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"00"}]}]}]}`
	cuts := regexp.MustCompile(`[{}\[\],:"\n]`).FindAllStringIndex(corpus, -1)
	rng := rand.New(rand.NewPCG(seed, 1))
	at := func() int {
		if rng.IntN(4) == 0 { return rng.IntN(len(corpus)) }
		return cuts[rng.IntN(len(cuts))][rng.IntN(2)]
	}
	var b strings.Builder
	for range 1 + rng.IntN(6) {
		from, to := at(), at()
		b.WriteString(corpus[min(from, to):max(from, to)])
		if rng.IntN(2) == 0 {
			b.WriteString([]string{"\n", "}", "]", "{", "[", `"`, ",", "]}]}]}\n", "\x00", `{"resourceSpans":[`}[rng.IntN(10)])
		}
	}
	return b.String()
}
func TestDbg(t *testing.T) {
	seed, _ := strconv.Atoi(os.Getenv("SEED"))
	data := dbgBuild(uint64(seed))
	bad := func(data string) bool {
		a := readFuzzed(t, limits{block: 4096, piece: 1 << 14, record: 1 << 20}, same, data)
		c := readFuzzed(t, limits{block: 16, piece: 64, record: 1 << 20}, iotest.OneByteReader, data)
		d := readFuzzed(t, limits{block: 200, piece: 400, record: 1 << 20}, iotest.HalfReader, data)
		return diff(a.everything(), c.everything()) != "" || diff(a.everything(), d.everything()) != "" 
	}
	for n := len(data)/2; n > 0; n /= 2 {
		for i := 0; i+n <= len(data); {
			if x := data[:i]+data[i+n:]; bad(x) { data = x } else { i += max(1,n/2) }
		}
	}
	a := readFuzzed(t, limits{block: 4096, piece: 1 << 14, record: 1 << 20}, same, data)
	c := readFuzzed(t, limits{block: 16, piece: 64, record: 1 << 20}, iotest.OneByteReader, data)
	d := readFuzzed(t, limits{block: 200, piece: 400, record: 1 << 20}, iotest.HalfReader, data)
	fmt.Printf("%q\n%s\n%s\n%s\n", data, strings.Join(a.everything(),"\n"), strings.Join(c.everything(),"\n"), strings.Join(d.everything(),"\n"))
}
func TestDbg2(t *testing.T) {
	data := dbgBuild(6736)
	println("mem"); readFuzzed(t, limits{block: 4096, piece: 1 << 14, record: 1 << 20}, same, data)
	println("tiny"); readFuzzed(t, limits{block: 16, piece: 64, record: 1 << 20}, iotest.OneByteReader, data)
	println(len(data)); i:=strings.Index(data, "zzz"); _ = i
	os.WriteFile("/tmp/data.bin", []byte(data), 0o644)
}
func TestDbg3(t *testing.T) {
	data := []byte(dbgBuild(6736))
	for n := 4100; n < len(data); n++ {
		l, ok, err := recordAt(data[:n], 4099)
		if ok || (err == nil) { fmt.Println(n, l, ok, err); break }
	}
	l, ok, err := recordAt(data, 4099)
	fmt.Println(l, ok, err, string(data[4095:4110]))
}
