package platform

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// NvidiaSMI reads the periodic output of nvidia-smi about the GPUs of a host: the CSV of --query-gpu, and dmon.
// Known columns become the series that reports use; any other column of numbers becomes a series with its own name.
//
// # What is odd
//
//   - A column is requested by a short name and has a long one in the header: clocks.sm is "clocks.current.sm [MHz]".
//     Until driver 535, clocks_event_reasons is clocks_throttle_reasons.
//   - Stamps are local times without a zone, except for those that scripts put before rows; those of dmon are whole seconds, and with "-o T" they have no date.
//   - Without "timestamp", or "-o", rows have no time, and with "noheader" their meaning is unknown.
//   - dmon repeats its header every 20 rows or so. Its pclk is the clock of the multiprocessors, and its sm their use.
//   - Unknown values are "-", "N/A", or "[Not Supported]"; all values of a lost GPU are "[GPU is lost]".
//   - The name of the host is missing: the name of the file takes its place.
var NvidiaSMI = &format.Format{
	Name:      "nvidia-smi",
	Noun:      "nvidia-smi log",
	Doc:       "clocks, power, temperature, and use of GPUs over time: 'nvidia-smi --query-gpu=timestamp,.. --format=csv -l 1', 'nvidia-smi dmon -o DT'; faults at one moment: 'nvidia-smi -q'",
	For:       "'sgtrace report'",
	Sniff:     isSMI,
	Index:     indexSMI,
	Series:    true,
	Momentary: true,
	Text:      true,
}

// A gpuColumn is the meaning of a column.
type gpuColumn struct {
	metric series.MetricID
	use    gpuUse
	bit    uint64 // of a reason that is active or not
}

type gpuUse uint8

const (
	noUse gpuUse = iota
	value
	reasonBits
	oneReason
	timeColumn
	dateColumn
	numberColumn
	uuidColumn
	busColumn
)

// queried are columns of --query-gpu by their names without units; those of reasons have the prefix of either driver
// version.
var queried = map[string]gpuColumn{
	"timestamp":                           {use: timeColumn},
	"index":                               {use: numberColumn},
	"uuid":                                {use: uuidColumn},
	"pci.bus_id":                          {use: busColumn},
	"utilization.gpu":                     {series.GPUUtil, value, 0},
	"clocks.current.sm":                   {series.SMClock, value, 0},
	"clocks.current.memory":               {series.MemoryClock, value, 0},
	"temperature.gpu":                     {series.GPUTemperature, value, 0},
	"power.draw":                          {series.Power, value, 0},
	"reasons.active":                      {series.Throttling, reasonBits, 0},
	"reasons.gpu_idle":                    {series.Throttling, oneReason, 0x1},
	"reasons.sw_power_cap":                {series.Throttling, oneReason, 0x4},
	"reasons.hw_slowdown":                 {series.Throttling, oneReason, 0x8},
	"reasons.sync_boost":                  {series.Throttling, oneReason, 0x10},
	"reasons.applications_clocks_setting": {series.Throttling, oneReason, 0x2},
	"reasons.sw_thermal_slowdown":         {series.Throttling, oneReason, 0x20},
	"reasons.hw_thermal_slowdown":         {series.Throttling, oneReason, 0x40},
	"reasons.hw_power_brake_slowdown":     {series.Throttling, oneReason, 0x80},
}

// monitored are columns of dmon.
var monitored = map[string]gpuColumn{
	"date":  {use: dateColumn},
	"time":  {use: timeColumn},
	"gpu":   {use: numberColumn},
	"sm":    {series.GPUUtil, value, 0},
	"pclk":  {series.SMClock, value, 0},
	"mclk":  {series.MemoryClock, value, 0},
	"gtemp": {series.GPUTemperature, value, 0},
	"pwr":   {series.Power, value, 0},
}

// isSMI looks for a header: one of dmon, or one of --query-gpu with a time and a column that only GPUs have.
func isSMI(head []byte) bool {
	if bytes.Contains(head, smiHead) {
		return true
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n\ufeff"), []byte("\n"))
	names := cells(line)
	if len(line) > 0 && line[0] == '#' {
		return slices.Contains(names, "gpu") && (slices.Contains(names, "pclk") || slices.Contains(names, "pwr") || slices.Contains(names, "mem") && !slices.Contains(names, "pid"))
	}
	of := func(prefix string) bool {
		return slices.ContainsFunc(names, func(s string) bool { return strings.HasPrefix(s, prefix) })
	}
	return len(names) > 1 && (slices.Contains(names, "timestamp") || slices.Contains(names, "index") || slices.Contains(names, "uuid")) &&
		(of("utilization.") || of("clocks") || of("power.") || of("temperature.") || of("memory."))
}

// cells splits a line of either kind.
func cells(line []byte) []string {
	line = bytes.TrimLeft(bytes.TrimSpace(line), "# ")
	if !bytes.Contains(line, []byte(",")) {
		return strings.Fields(string(line))
	}
	list := strings.Split(string(line), ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

func indexSMI(in *format.Input, opt *format.Options) (*format.Source, error) {
	file, err := in.Open()
	if err != nil {
		return nil, err
	}
	f := opt.Series.Fill(in.Name, "nvidia-smi")
	f.Source().Zone.Local = true
	base := filepath.Base(in.Name)
	if i := strings.IndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	server := f.Server(series.Server{Host: base})
	r := &smiReader{Filler: f, path: in.Path, server: server, numbers: map[string]int32{}}
	_, err = logline.Read(file, in.Name, opt.Diags, r.line)
	if err != nil {
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	if r.untimed {
		return nil, errors.New("its rows have no time: ask for 'timestamp', or give dmon '-o DT'")
	}
	if r.bad > 0 {
		opt.Diags.Add(trace.MetricsBadLine.Of(in.Name, r.bad, r.firstBad))
	}
	if r.days >= 0 && r.clock != 0 {
		f.Shift(logline.LastDay(r.path, r.clock) - r.days*day)
		f.Source().Undated = true
	}
	return &format.Source{}, nil
}

// day is the length of a day in ns.
const day = trace.Time(24 * time.Hour)

// An smiReader reads one file.
type smiReader struct {
	*series.Filler
	path    string
	server  int32
	columns []gpuColumn
	numbers map[string]int32 // of GPUs, by UUID or bus
	stamps  logline.Stamper
	untimed bool
	query   *smiQuery // reads output of "nvidia-smi -q"; nil for a table
	// For stamps without a date: the last one, since midnight, and the number of days since the first one. days is -1 for
	// stamps with dates.
	clock, days trace.Time
	bad         int // lines that are not rows
	firstBad    int64
}

func (r *smiReader) line(b []byte, n int64) {
	r.Source().Lines = int(n)
	if r.query == nil && bytes.Contains(b, smiHead) {
		r.query = &smiQuery{Filler: r.Filler, server: r.server}
	}
	if r.query != nil {
		r.query.line(b, n)
		return
	}
	b = bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\ufeff")))
	if len(b) == 0 {
		return
	}
	list := cells(b)
	switch {
	case b[0] == '#' && slices.Contains(list, "gpu"):
		r.header(list, monitored)
	case b[0] == '#': // units
	case slices.Contains(list, "timestamp") || r.columns == nil:
		r.header(list, queried)
	case len(list) != len(r.columns) || !r.row(list, n):
		if r.bad++; r.bad == 1 {
			r.firstBad = n
		}
	}
}

// header sets the meanings of columns. Unknown columns become series with their own name.
func (r *smiReader) header(names []string, known map[string]gpuColumn) {
	r.columns = r.columns[:0]
	timed, dated, all := false, false, false
	for _, name := range names {
		name, unit, _ := strings.Cut(name, " [")
		unit = strings.TrimSuffix(unit, "]")
		short := strings.ToLower(name)
		for _, prefix := range [...]string{"clocks_event_", "clocks_throttle_"} {
			short = strings.TrimPrefix(short, prefix)
		}
		c, ok := known[short]
		if !ok {
			c = gpuColumn{metric: r.Metric(series.Metric{Name: "nvidia-smi " + name, Unit: unit, Kind: series.Gauge, Doc: "as its producer names it"}), use: value}
		}
		timed, dated, all = timed || c.use == timeColumn, dated || c.use == dateColumn, all || c.use == reasonBits
		r.columns = append(r.columns, c)
	}
	if all { // has the same information as a column per reason
		for i := range r.columns {
			if r.columns[i].use == oneReason {
				r.columns[i].use = noUse
			}
		}
	}
	r.untimed = r.untimed || !timed
	if _, isQuery := known["timestamp"]; isQuery || dated {
		r.days = -1
	}
}

// row reads a row, and reports whether it is one.
func (r *smiReader) row(list []string, n int64) bool {
	at, ok := r.time(list)
	if !ok {
		return false
	}
	r.Line(n)
	place := r.place(list)
	bits, told := uint64(0), false
	for i, c := range r.columns {
		switch text := list[i]; c.use {
		case value:
			if v, ok := number(text); ok {
				r.Add(r.Series(c.metric, place), at, v)
			} else if text == "[GPU is lost]" {
				r.Instant(series.Instant{Time: at, Place: place, Kind: series.Hardware, Line: uint32(n)}, gpuIsLost)
				return true
			}
		case reasonBits:
			if v, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64); err == nil {
				bits, told = v, true
			}
		case oneReason:
			if told = told || strings.HasSuffix(text, "Active"); text == "Active" {
				bits |= c.bit
			}
		}
	}
	if told {
		r.Add(r.Series(series.Throttling, place), at, float64(bits))
	}
	return true
}

// gpuIsLost is the meaning of NVML's "GPU is lost". The kernel reports it as Xid 79.
const gpuIsLost = "Xid 79: GPU has fallen off the bus, or cannot be reached"

// number parses "1980 MHz", "83.25 W", "96 %", or a number without a unit.
func number(text string) (float64, bool) {
	text, _, _ = strings.Cut(text, " ")
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// time returns the time of a row.
func (r *smiReader) time(list []string) (at trace.Time, ok bool) {
	date, clock := "", ""
	for i, c := range r.columns {
		switch c.use {
		case dateColumn:
			date = list[i]
		case timeColumn:
			clock = list[i]
		}
	}
	switch {
	case r.days < 0 && date == "": // 2026/11/27 17:35:12.308
		stamp := []byte(strings.ReplaceAll(clock, "/", "-"))
		if len(stamp) < logline.DateTime {
			return 0, false
		}
		ns, _, grain := logline.Fraction(stamp[logline.DateTime:])
		r.Within(grain)
		if at, _, ok = r.stamps.Zoned(stamp); ok {
			r.Source().Zone.Local = false
			return at, true
		}
		at, ok = r.stamps.Read(stamp)
		return at + ns, ok
	case date != "": // 20261127
		if len(date) != len("20261127") || len(clock) != len("17:35:12") {
			return 0, false
		}
		r.Within(1e9)
		return r.stamps.Read([]byte(date[:4] + "-" + date[4:6] + "-" + date[6:] + " " + clock))
	}
	if at, ok = logline.ClockOf([]byte(clock)); !ok {
		return 0, false
	}
	if r.Within(1e9); at < r.clock {
		r.days++
	}
	r.clock = at
	return at + r.days*day, true
}

// place returns the GPU of a row. Without a number, GPUs are counted in the order of rows, which is that of their numbers.
func (r *smiReader) place(list []string) int32 {
	p := series.Place{Server: r.server, Rank: trace.NoRank, GPU: series.NoGPU}
	key := ""
	for i, c := range r.columns {
		switch c.use {
		case numberColumn:
			if v, err := strconv.Atoi(list[i]); err == nil {
				p.GPU = int32(v)
			}
		case uuidColumn:
			p.UUID, key = list[i], list[i]
		case busColumn:
			if key == "" {
				key = list[i]
			}
		}
	}
	if p.GPU == series.NoGPU && key != "" {
		n := order.Memo(r.numbers, key, func() int32 { return int32(len(r.numbers)) })
		p.GPU = n
	}
	return r.Place(p)
}
