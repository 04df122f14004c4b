package rows

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/trace"
)

// large returns tables of n kernels and n calls of eight processes.
func large(n int) string {
	return fmt.Sprintf(nsystest.Schema2024+`
		WITH RECURSIVE i(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM i WHERE x<1999)
			INSERT INTO StringIds SELECT x, 'void some_namespace::kernel_' || x || '<float, int>(float*, const float*, int)' FROM i;
		WITH RECURSIVE i(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM i WHERE x<%[1]d-1)
			INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 2000000000+x*9137, 2000000000+x*9137+5000+x%%4096, x%%8, 1, NULL, 7, x,
				281474976710656 + (4100 + x%%8)*16777216, x%%2000, x%%1000, x%%1500, 1, 0, 64, 132, x%%7, 1, 256, 1, 1,
				1024, 49152, 0, 0, x, 49152, NULL, 0 FROM i;
		WITH RECURSIVE i(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM i WHERE x<%[1]d-1)
			INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 2000000000+x*9137-7000, 2000000000+x*9137-2000, 0,
				281474976710656 + (4100 + x%%8)*16777216 + 4100 + x%%8, x, x%%20, 0, NULL FROM i;
		WITH RECURSIVE i(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM i WHERE x<%[1]d/4-1)
			INSERT INTO NVTX_EVENTS SELECT 2000000000+x*30137, 2000000000+x*30137+5000, 59, NULL, NULL, NULL, 'step ' || x%%500,
				281474976710656 + (4100 + x%%8)*16777216 + 4100 + x%%8, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL,
				NULL, NULL, NULL FROM i;`, n)
}

// BenchmarkScan reports rows per second for a million kernels and a million calls; bare is SQLite
// alone scanning all their columns without processing.
func BenchmarkScan(b *testing.B) {
	const n = 1_000_000
	path := nsystest.Database(b, large(n))
	for _, columns := range []struct{ name, kernel, call string }{
		{"bare", "*", "*"},
		{"bare-brief", "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, graphNodeId",
			"start, end, globalTid, correlationId, nameId, eventClass"},
		// This is what stream-brief reads: row numbers reveal damage.
		{"bare-brief-rowid", "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, graphNodeId, rowid",
			"start, end, globalTid, correlationId, nameId, eventClass, rowid"},
	} {
		b.Run(columns.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bare(b, path, "SELECT "+columns.kernel+" FROM CUPTI_ACTIVITY_KIND_KERNEL")
				bare(b, path, "SELECT "+columns.call+" FROM CUPTI_ACTIVITY_KIND_RUNTIME")
			}
			rate(b, 2*n)
		})
	}
	for _, c := range []struct {
		name string
		opt  Options
	}{
		{"stream", Options{}},
		{"stream-brief", Options{Brief: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := Open(path, c.opt)
				if err != nil {
					b.Fatal(err)
				}
				rows, sum := 0, trace.Time(0)
				s.Within(0, 0).Kernels(func(k *Kernel) bool { rows++; sum += k.End - k.Start; return true })
				s.Within(0, 0).API(func(c *Call) bool { rows++; sum += c.End - c.Start; return true })
				if rows != 2*n {
					b.Fatalf("%d rows", rows)
				}
				s.Close()
			}
			rate(b, 2*n)
		})
	}
}

// BenchmarkRanges reports rows per second for a quarter of a million ranges.
func BenchmarkRanges(b *testing.B) {
	const n = 1_000_000
	path := nsystest.Database(b, large(n))
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		rows := 0
		for range s.Within(0, 0).Ranges {
			rows++
		}
		if s.Close(); rows != n/4 {
			b.Fatalf("%d rows", rows)
		}
	}
	rate(b, n/4)
}

// rate reports millions of rows per second.
func rate(b *testing.B, rows int) {
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func bare(b *testing.B, path, sql string) {
	conn := nsystest.Connect(b, path)
	stmt, _, err := conn.PrepareTransient(sql)
	if err != nil {
		b.Fatal(err)
	}
	defer stmt.Finalize()
	sum, columns := int64(0), stmt.ColumnCount()
	for {
		row, err := stmt.Step()
		if err != nil {
			b.Fatal(err)
		}
		if !row {
			break
		}
		for i := range columns {
			sum += stmt.ColumnInt64(i)
		}
	}
}
