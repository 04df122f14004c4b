package platform

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Printed is tables that tools print about GPUs, containers, and hosts, once or in a loop: "docker stats", "kubectl top", rocm-smi, "amd-smi
// monitor", "dcgmi dmon", the box of nvidia-smi, and free.
//
// # What is odd
//
//   - Only nvidia-smi prints a time, and amd-smi in a column. In a loop, the output of "date" between two tables is the time of the second one. In a file without times,
//     the last table has the time at which the file was written, and the others have none.
//   - Cells begin below the names of their columns, and may be so wide that only one blank separates them.
//   - docker counts file caches as used, kubectl does not. A container without a limit has the memory of its host as the limit.
//   - Kubernetes writes cores as "4100m" and memory as "90000Mi".
//   - free writes KiB, unless another unit was requested, which its table does not show: we assume that a host has at least 1 GiB.
//   - A GPU that is gone has "ERR!" in the box of nvidia-smi.
var Printed = &format.Format{
	Name:      "printed tables",
	Noun:      "table printout",
	Doc:       "tables that are printed once or in a loop with `date`: docker stats, kubectl top, rocm-smi, amd-smi monitor, dcgmi dmon, nvidia-smi, free",
	For:       "'sgtrace report'",
	Sniff:     func(head []byte) bool { return printedHead(head) != nil },
	Index:     indexPrinted,
	Series:    true,
	Momentary: true,
	Text:      true,
}

// A printedTable is a table that a tool prints. Its header has some of the column names in head.
type printedTable struct {
	tool    string
	has     []string
	who     string // the column that names rows: GPUs by number, or containers and pods
	ofGPUs  bool
	columns map[string]printedColumn
}

// A printedColumn is the metric of a column, and that of the second number in cells like "1GiB / 2GiB".
type printedColumn struct{ metric, second series.Metric }

// Metrics of containers have cAdvisor's names.
var (
	memoryUsed  = series.Metric{Name: "container_memory_working_set_bytes", Unit: "bytes", Kind: series.Gauge, Doc: "memory that a container uses"}
	memoryLimit = series.Metric{Name: "container_spec_memory_limit_bytes", Unit: "bytes", Kind: series.Gauge, Doc: "memory that a container may use"}
	cores       = series.Metric{Name: "container cores", Kind: series.Gauge, Doc: "CPU cores that a container uses"}
	cpuPercent  = series.Metric{Name: "container CPU", Unit: "%", Kind: series.Gauge, Doc: "part of a core that a container uses"}
	gpuMemory   = series.Metric{Name: "GPU memory used", Unit: "bytes", Kind: series.Gauge, Doc: "memory of a GPU in use"}
	hostFree    = series.Metric{Name: "node_memory_MemAvailable_bytes", Unit: "bytes", Kind: series.Gauge, Doc: "memory of a host that programs can get"}
	hostMemory  = series.Metric{Name: "node_memory_MemTotal_bytes", Unit: "bytes", Kind: series.Gauge, Doc: "memory of a host"}
	gpuTotal    = series.Metric{Name: "GPU memory", Unit: "bytes", Kind: series.Gauge, Doc: "memory of a GPU"}
)

// ofHost is the tool whose table has a row for memory, "Mem:", and one for swap.
const ofHost = "free"

func known(id series.MetricID) printedColumn { return printedColumn{metric: series.Metrics[id]} }

var printedTables = []printedTable{
	{"docker stats", []string{"NAME", "MEM USAGE / LIMIT"}, "NAME", false, map[string]printedColumn{"CPU %": {metric: cpuPercent}, "MEM USAGE / LIMIT": {memoryUsed, memoryLimit}}},
	{"docker stats", []string{"CONTAINER", "MEM USAGE / LIMIT"}, "CONTAINER", false, map[string]printedColumn{"CPU %": {metric: cpuPercent}, "MEM USAGE / LIMIT": {memoryUsed, memoryLimit}}},
	{"kubectl top", []string{"CPU(cores)", "MEMORY(bytes)", "NAME"}, "NAME", false, map[string]printedColumn{"CPU(cores)": {metric: cores}, "MEMORY(bytes)": {metric: memoryUsed}}},
	{"kubectl top", []string{"CPU(cores)", "MEMORY(bytes)", "POD"}, "POD", false, map[string]printedColumn{"CPU(cores)": {metric: cores}, "MEMORY(bytes)": {metric: memoryUsed}}},
	{"rocm-smi", []string{"Device", "SCLK", "MCLK"}, "Device", true, rocmColumns}, {"rocm-smi", []string{"GPU", "SCLK", "MCLK"}, "GPU", true, rocmColumns},
	{"amd-smi monitor", []string{"GPU", "GPU_T", "GFX_CLK"}, "GPU", true, amdColumns},
	{tool: ofHost, has: []string{"total", "used", "free", "available"}},
	{"dcgmi dmon", []string{"#Entity"}, "#Entity", true, dcgmColumns}, {"dcgmi dmon", []string{"# Entity"}, "# Entity", true, dcgmColumns},
}

var (
	rocmColumns = map[string]printedColumn{"SCLK": known(series.SMClock), "MCLK": known(series.MemoryClock), "Temp": known(series.GPUTemperature), "Temp (DieEdge)": known(series.GPUTemperature), "Power": known(series.Power), "AvgPwr": known(series.Power), "GPU%": known(series.GPUUtil)}
	amdColumns  = map[string]printedColumn{"GFX_CLK": known(series.SMClock), "MEM_CLOCK": known(series.MemoryClock), "GPU_T": known(series.GPUTemperature), "POWER": known(series.Power), "GFX%": known(series.GPUUtil)}
	dcgmColumns = map[string]printedColumn{"SMCLK": known(series.SMClock), "MMCLK": known(series.MemoryClock), "TMPTR": known(series.GPUTemperature), "POWER": known(series.Power), "GPUTL": known(series.GPUUtil)}
)

// The two lines of a GPU in the box of nvidia-smi: "|   0  NVIDIA H200   On  | 00000000:19:00.0 Off |", "| N/A   38C  P0
// 72W / 700W |  1MiB / 143771MiB |  0%".
var (
	boxHead = []byte("| NVIDIA-SMI ")
	boxGPU  = lazyregexp.New(`^\| +(\d+) .*\| +([0-9A-Fa-f]{8}:[0-9A-Fa-f:.]+) `)
	boxRow  = lazyregexp.New(`^\|.*?(?:(\d+)C|ERR!) .*?(?:([\d.]+)W|N/A|ERR!|Unknown\S*) / +(?:[\d.]+W|N/A|ERR!) +\| +(\d+)MiB / +(\d+)MiB \| +(?:(\d+)%|N/A|ERR!)`)
)

// printedHead returns the table at the beginning of a text, after any output of a loop between tables.
func printedHead(head []byte) *printedTable {
	const few = 12
	for n := 0; n < few && len(head) > 0; n++ {
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		if bytes.HasPrefix(line, boxHead) {
			return &boxTable
		}
		if t, _ := tableOf(string(line)); t != nil {
			return t
		}
		head = rest
	}
	return nil
}

var boxTable = printedTable{tool: "nvidia-smi", ofGPUs: true}

// A cellAt is the name of a column, and its start in runes.
type cellAt struct {
	name string
	at   int
}

// cellsOf splits a line at two or more blanks.
func cellsOf(line string) (cells []cellAt) {
	runes := []rune(strings.TrimRight(line, " \r"))
	for i := 0; i < len(runes); {
		for i < len(runes) && runes[i] == ' ' {
			i++
		}
		at := i
		for i < len(runes) && (runes[i] != ' ' || i+1 < len(runes) && runes[i+1] != ' ') {
			i++
		}
		cells = append(cells, cellAt{string(runes[at:i]), at})
	}
	return cells
}

// tableOf returns the table and the columns of a header line.
func tableOf(line string) (*printedTable, []cellAt) {
	if len(line) < 16 || len(line) > 1000 || !strings.Contains(line, "  ") && !strings.Contains(line, "(cores)") {
		return nil, nil
	}
	cells := cellsOf(line)
	for i := range printedTables {
		t := &printedTables[i]
		if !slices.ContainsFunc(t.has, func(name string) bool {
			return !slices.ContainsFunc(cells, func(c cellAt) bool { return c.name == name })
		}) {
			return t, cells
		}
	}
	return nil, nil
}

// under returns the cells of a row by column name. If there is a cell for each name, they are in order; otherwise each
// column gets the cell whose start or end is nearest to its name, unless that cell is nearer to another name.
func under(head []cellAt, row string) map[string]string {
	end := func(c cellAt) int { return c.at + utf8.RuneCountInString(c.name) }
	away := func(a, b cellAt) int {
		return min(max(a.at-b.at, b.at-a.at), max(end(a)-end(b), end(b)-end(a)))
	}
	nearest := func(list []cellAt, to cellAt) cellAt {
		return slices.MinFunc(list, func(a, b cellAt) int { return cmp.Compare(away(a, to), away(b, to)) })
	}
	cells, out := cellsOf(row), map[string]string{}
	if len(cells) == len(head) {
		for i, c := range head {
			out[c.name] = cells[i].name
		}
		return out
	}
	for _, c := range head {
		if len(cells) > 0 {
			if x := nearest(cells, c); nearest(head, x) == c {
				out[c.name] = x.name
			}
		}
	}
	return out
}

// A printedReader reads one file.
type printedReader struct {
	*series.Filler
	host   string
	table  *printedTable
	cells  []cellAt
	at     trace.Time // of the table; 0 is unknown
	tables int
	last   map[int32]float64 // by series, for a table without a time
	gpu    int32             // of the next line of a box; -1 is none
	ids    map[series.Metric]series.MetricID
}

func indexPrinted(in *format.Input, opt *format.Options) (*format.Source, error) {
	file, err := in.Open()
	if err != nil {
		return nil, err
	}
	r := &printedReader{Filler: opt.Series.Fill(in.Name, "printed tables"), gpu: -1, ids: map[series.Metric]series.MetricID{}, last: map[int32]float64{}}
	r.host, _, _ = strings.Cut(filepath.Base(in.Name), ".")
	if _, err = logline.Read(file, in.Name, opt.Diags, r.line); err != nil {
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	if len(r.last) > 0 {
		written := time.Now()
		if info, err := os.Stat(in.Path); err == nil {
			written = info.ModTime()
		}
		for _, id := range slices.Sorted(maps.Keys(r.last)) {
			r.Add(id, trace.Time(written.UnixNano()), r.last[id])
		}
		opt.Diags.Add(trace.TablesUntimed.Of(in.Name, r.tables, written.UTC().Format(time.RFC3339)))
	}
	return &format.Source{}, nil
}

// line reads a line: a time, a header, or a row.
func (r *printedReader) line(b []byte, n int64) {
	r.Source().Lines = int(n)
	r.Line(n)
	text := strings.TrimRight(string(b[:min(len(b), 1000)]), " \r")
	if at, local, ok := dateOf([]byte(strings.TrimSpace(text))); ok {
		r.at, r.table, r.Source().Zone.Local = at, nil, r.Source().Zone.Local || local
		return
	}
	if bytes.HasPrefix(b, boxHead) {
		r.begin(&boxTable, nil)
		return
	}
	if t, cells := tableOf(text); t != nil {
		r.begin(t, cells)
		return
	}
	switch {
	case r.table == nil:
	case r.table == &boxTable:
		r.boxLine(text, n)
	case r.table.tool == ofHost:
		r.hostLine(text)
	default:
		r.row(text)
	}
}

// begin begins a table. dcgmi and docker repeat their header; without times, only the last table counts.
func (r *printedReader) begin(t *printedTable, cells []cellAt) {
	r.table, r.cells, r.gpu = t, cells, -1
	r.tables++
	clear(r.last)
}

// row reads a row of the table.
func (r *printedReader) row(text string) {
	cells := under(r.cells, text)
	if at, ok := unixStamp(cells["TIMESTAMP"]); ok && at > trace.Time(1e18) { // amd-smi's
		r.at = at
	}
	who := cells[r.table.who]
	p := series.Place{Rank: trace.NoRank, GPU: series.NoGPU}
	if r.table.ofGPUs {
		gpu, err := strconv.ParseInt(strings.TrimPrefix(who, "GPU "), 10, 32)
		if err != nil {
			return
		}
		p.Server, p.GPU = r.Server(series.Server{Host: r.host}), int32(gpu)
	} else {
		if who == "" || who == "--" {
			return
		}
		p.Server, p.User = r.Server(series.Server{}), who
	}
	place := r.Place(p)
	for _, c := range r.cells {
		column, ok := r.table.columns[c.name]
		if !ok {
			continue
		}
		first, second, _ := strings.Cut(cells[c.name], " / ")
		r.add(place, column.metric, first)
		if column.second.Name != "" {
			r.add(place, column.second, second)
		}
	}
}

// hostLine parses "Mem:  503Gi  120Gi  ..", or the same in KiB or in the unit passed to free.
func (r *printedReader) hostLine(text string) {
	if !strings.HasPrefix(text, "Mem:") {
		return
	}
	cells := under(r.cells, text)
	place := r.Place(series.Place{Server: r.Server(series.Server{Host: r.host}), Rank: trace.NoRank, GPU: series.NoGPU})
	total, all := cells["total"], cells["available"]
	unit := ""
	if v, err := strconv.ParseFloat(total, 64); err == nil {
		const least, most = 1 << 30, 1 << 46 // plausible memory of a host in bytes
		for _, x := range [...]string{"KiB", "MiB", "B", "GiB"} {
			if bytes := v * cmp.Or(amounts[x].times, 1); unit == "" && bytes >= least && bytes < most {
				unit = x
			}
		}
	} else if strings.HasSuffix(total, "G") || strings.HasSuffix(total, "T") || strings.HasSuffix(total, "M") { // from -h until 2018
		unit = "iB"
	}
	r.add(place, hostMemory, total+unit)
	r.add(place, hostFree, all+unit)
}

// boxLine reads a line of the box of nvidia-smi.
func (r *printedReader) boxLine(text string, n int64) {
	if m := boxGPU.FindStringSubmatch(text); m != nil {
		if gpu, err := strconv.ParseInt(m[1], 10, 32); err == nil {
			r.gpu = int32(gpu)
		}
		return
	}
	m := boxRow.FindStringSubmatch(text)
	if r.gpu < 0 || m == nil {
		return
	}
	place := r.Place(series.Place{Server: r.Server(series.Server{Host: r.host}), Rank: trace.NoRank, GPU: r.gpu})
	if strings.Contains(text, "ERR!") {
		r.Instant(series.Instant{Time: r.at, Place: place, Kind: series.Hardware, Line: uint32(n)}, gpuIsLost)
	}
	r.add(place, series.Metrics[series.GPUTemperature], m[1])
	r.add(place, series.Metrics[series.Power], m[2])
	r.add(place, gpuMemory, m[3]+"MiB")
	r.add(place, gpuTotal, m[4]+"MiB")
	r.add(place, series.Metrics[series.GPUUtil], m[5])
	r.gpu = -1
}

// add adds the number at the beginning of a cell, multiplied by its unit.
func (r *printedReader) add(place int32, m series.Metric, cell string) {
	v, unit, ok := quantity(cell)
	if !ok {
		return
	}
	if m == cores && unit == "m" {
		v /= 1000
	}
	id, ok := r.ids[m]
	if !ok {
		if id = series.MetricID(slices.Index(series.Metrics[:], m)); id < 0 {
			id = r.Metric(m)
		}
		r.ids[m] = id
	}
	if s := r.Series(id, place); r.at != 0 {
		r.Add(s, r.at, v)
	} else {
		r.last[s] = v
	}
}

// quantity parses "60.1GiB", "90000Mi", "108.0°C", or "4100m". It returns the unit if that is not a size.
func quantity(cell string) (v float64, unit string, ok bool) {
	end := cmp.Or(strings.IndexFunc(cell, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })+1, len(cell)+1) - 1
	v, err := strconv.ParseFloat(cell[:end], 64)
	if err != nil {
		return 0, "", false
	}
	unit = strings.TrimSpace(cell[end:])
	size := unit
	if strings.HasSuffix(size, "i") { // Kubernetes's
		size += "B"
	}
	if a, ok := amounts[size]; ok && a.unit == "B" {
		return v * a.times, "", true
	}
	return v, unit, true
}
