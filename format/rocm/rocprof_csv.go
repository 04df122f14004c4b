package rocm

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// RocprofCSV reads the tables that rocprofv3 writes with --output-format csv, and those that rocpd convert makes.
//
// # What is odd
//
//   - The data of one process is in several files: kernels, copies, calls, markers, counters, and the agents.
//     They have a common prefix, the process ID or the argument of -o. The table of kernels is the input, or the first
//     of the others if there is none; the others are read with it.
//   - Columns and their case differ by version: they are found by name.
//   - A table of kernels does not name its process: its calls do, or the name of the file.
//   - The text of a roctx range is in the column for the name of a function.
//   - Agents have the numbers of nodes, which include CPUs: the table of agents shows which are GPUs.
//   - Copies have no size.
var RocprofCSV = &format.Format{
	Name:    "rocprofv3 CSV",
	Doc:     "tables of rocprofv3 (*_kernel_trace.csv and those beside it), as --output-format csv writes them",
	For:     "'sgtrace merge' or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Noun:    "rocprofv3 table",
	Sniff:   func(head []byte) bool { return csvBegins.Match(head) },
	Index:   index("rocprofv3", readCSV),
	Text:    true,
	Beside:  true,
	Machine: true,
}

// csvBegins matches the header of a table, in which one of the columns is a time or a counter.
var csvBegins = lazyregexp.New(`^(?i)("?Guid"?,)?"?(Kind|Domain|Correlation_Id)"?,"?(Agent_Id|Direction|Operation|Correlation_Id|Function|Dispatch_Id)"?,[^\n]*"?(Start_Timestamp|Counter_Value)"?`)

// csvTables are the suffixes of table names, in the order of preference as the input.
var csvTables = []string{"kernel_trace", "memory_copy_trace", "hip_api_trace", "hsa_api_trace", "marker_api_trace", "rccl_api_trace",
	"memory_allocation_trace", "counter_collection"}

// csvReader reads the tables of one prefix.
type csvReader struct {
	opt     *format.Options
	to      *recorder
	procs   map[string]*process       // by Guid, "" if there is none
	pid     int64                     // 0 is unknown
	agents  map[int64]csvAgent        // by node; nil is unknown
	counted map[csvDispatch]*dispatch // kernels with counters but without a trace so far
	order   []csvDispatch             // of counted, as in the file
}

type csvAgent struct {
	agent
	name string
}

// csvDispatch identifies a kernel.
type csvDispatch struct {
	process string
	id      int64
}

func readCSV(in *format.Input, opt *format.Options, to *recorder) error {
	prefix, lead := csvFiles(in.Path)
	if in.Found && lead != in.Path {
		return readBeside{}
	}
	r := &csvReader{opt: opt, to: to, procs: map[string]*process{}, counted: map[csvDispatch]*dispatch{}}
	r.pid, _ = strconv.ParseInt(strings.TrimSuffix(filepath.Base(prefix), "_"), 10, 64)
	beside := func(table string) error {
		path := prefix + table + ".csv"
		if in.Path == "" || path == in.Path {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return nil // there is no such table
		}
		r.table(path, f)
		return f.Close()
	}
	errs := []error{beside("agent_info")}
	to.rows = 0
	for _, table := range slices.Backward(csvTables) { // calls show the process, and counters belong to kernels
		errs = append(errs, beside(table))
	}
	f, err := in.Open()
	if err != nil {
		return err
	}
	r.table(in.Name, f)
	errs = append(errs, f.Close())
	r.countedAlone()
	if to.rows == 0 {
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has no events", "nothing was traced"))
	}
	if r.agents == nil {
		opt.Diags.Add(trace.RocmAgents.Of(in.Name))
	}
	r.process("") // even a file without rows has a process
	return errors.Join(errs...)
}

// readBeside is the error for a table that is a part of another input. It has no data, as there may be thousands.
type readBeside struct{}

func (readBeside) Error() string        { return "read with the other tables of its process" }
func (readBeside) Is(target error) bool { return target == format.ErrNotNeeded }

// csvFiles returns the common prefix of the tables next to a file, and the one that is the input.
func csvFiles(path string) (prefix, lead string) {
	for _, table := range csvTables {
		if before, ok := strings.CutSuffix(path, table+".csv"); ok {
			prefix = before
			break
		}
	}
	for _, table := range csvTables {
		if info, err := os.Stat(prefix + table + ".csv"); prefix != "" && err == nil && info.Size() > 0 {
			return prefix, prefix + table + ".csv"
		}
	}
	return path, path
}

// A csvRow is a row of a table. Columns are found by name; missing ones are empty.
type csvRow struct {
	columns map[string]int
	cells   []string
}

func (w *csvRow) text(names ...string) string {
	for _, name := range names {
		if i, ok := w.columns[name]; ok && i < len(w.cells) && w.cells[i] != "" {
			return w.cells[i]
		}
	}
	return ""
}

// number returns a cell as a number: for "Agent 4", 4.
func (w *csvRow) number(names ...string) int64 {
	text := w.text(names...)
	n, _ := strconv.ParseInt(text[strings.LastIndexByte(text, ' ')+1:], 10, 64)
	return n
}

// timed reports whether the times in a row are numbers, as far as it has any.
func (w *csvRow) timed() bool {
	return !slices.ContainsFunc([]string{"start_timestamp", "end_timestamp"}, func(name string) bool {
		text := w.text(name)
		_, err := strconv.ParseInt(text, 10, 64)
		return text != "" && err != nil
	})
}

func (w *csvRow) extent(of string) [3]int64 {
	return [3]int64{w.number(of + "_x"), w.number(of + "_y"), w.number(of + "_z")}
}

// table reads one table. Damage ends it.
func (r *csvReader) table(name string, from io.Reader) {
	c := csv.NewReader(from)
	c.LazyQuotes, c.ReuseRecord, c.FieldsPerRecord = true, true, -1
	head, err := c.Read()
	if err != nil {
		return // it is empty
	}
	w := csvRow{columns: map[string]int{}}
	for i, column := range head {
		w.columns[strings.ToLower(strings.TrimSpace(column))] = i
	}
	add := r.reads(&w)
	for add != nil {
		at := c.InputOffset()
		switch w.cells, err = c.Read(); {
		case err == io.EOF:
			return
		case err == nil && len(w.cells) < len(w.columns):
			err = fmt.Errorf("a row has %d of %d columns", len(w.cells), len(w.columns))
		}
		if err != nil {
			r.opt.Diags.Add(trace.InputDamaged.At(trace.Pos{File: name, Offset: at}, err))
			return
		}
		if !w.timed() {
			r.opt.Diags.Add(trace.RocmTime.At(trace.Pos{File: name, Offset: at}, w.number("start_timestamp"), w.number("end_timestamp")))
			continue
		}
		add(&w)
		r.to.rows++
	}
}

// reads returns the method for the rows of a table, depending on its columns; nil if there is none.
func (r *csvReader) reads(w *csvRow) func(*csvRow) {
	has := func(columns ...string) bool {
		return !slices.ContainsFunc(columns, func(c string) bool { _, ok := w.columns[c]; return !ok })
	}
	switch {
	case has("node_id", "agent_type"):
		return r.agent
	case has("dispatch_id", "counter_name", "counter_value"):
		return r.counter
	case has("kernel_name", "start_timestamp", "end_timestamp"):
		return func(w *csvRow) { r.kernel(w) }
	case has("direction", "start_timestamp", "end_timestamp"):
		return r.copy
	case has("function", "start_timestamp", "end_timestamp"):
		return r.call
	case has("operation", "address", "start_timestamp", "end_timestamp"):
		return r.allocation
	}
	return nil
}

func (r *csvReader) agent(w *csvRow) {
	if r.agents == nil {
		r.agents = map[int64]csvAgent{}
	}
	a := csvAgent{agent{gpu: w.text("agent_type") == "GPU"}, cmp.Or(w.text("product_name"), w.text("model_name"), w.text("name"))}
	for _, other := range r.agents {
		if a.gpu && other.gpu {
			a.number++
		}
	}
	r.agents[w.number("node_id")] = a
}

// process returns the process of a Guid.
func (r *csvReader) process(guid string) *process {
	if p := r.procs[guid]; p != nil {
		return p
	}
	p := r.to.newProcess(r.pid, "")
	if r.agents == nil {
		p.Unnumbered()
	}
	for _, a := range r.agents {
		if a.gpu {
			p.Device(a.number, a.name, "")
		}
	}
	r.procs[guid] = p
	return p
}

// of returns the process of a row.
func (r *csvReader) of(w *csvRow) *process {
	if pid := w.number("process_id"); pid != 0 && len(r.procs) == 0 {
		r.pid = pid
	}
	return r.process(w.text("guid"))
}

// device returns the device of the first of some agents that is a GPU.
func (r *csvReader) device(w *csvRow, columns ...string) int64 {
	for _, column := range columns {
		if a := r.agents[w.number(column)]; a.gpu {
			return int64(a.number)
		}
	}
	return w.number(columns[0])
}

func (r *csvReader) at(w *csvRow, device int64) at {
	return at{Start: trace.Time(w.number("start_timestamp")), End: trace.Time(w.number("end_timestamp")), Device: device,
		Stream: w.number("stream_id", "queue_id"), Correlation: w.number("correlation_id")}
}

// kernel adds a kernel that was traced, with its counters.
func (r *csvReader) kernel(w *csvRow) {
	p, key := r.of(w), csvDispatch{w.text("guid"), w.number("dispatch_id")}
	k := dispatch{at: r.at(w, r.device(w, "agent_id")), Name: r.name(w.text("kernel_name")), Grid: w.extent("grid_size"), Group: w.extent("workgroup_size"),
		Registers: w.number("vgpr_count"), Shared: w.number("lds_block_size", "group_segment_size")}
	if c := r.counted[key]; c != nil {
		k.Counters = c.Counters
		delete(r.counted, key)
	}
	p.kernel(&k)
}

func (r *csvReader) name(text string) trace.Sym {
	return r.opt.Syms.Intern(cmp.Or(text, profile.NoName))
}

// counter records a counter of a kernel, which may have a trace, too.
func (r *csvReader) counter(w *csvRow) {
	key := csvDispatch{w.text("guid"), w.number("dispatch_id")}
	value, err := strconv.ParseFloat(w.text("counter_value"), 64)
	if err != nil {
		return
	}
	device := r.device(w, "agent_id")
	k := r.counted[key]
	if k == nil {
		r.of(w)
		k = &dispatch{at: r.at(w, device), Name: r.name(w.text("kernel_name")), Flat: true, Registers: w.number("vgpr_count"), Shared: w.number("lds_block_size")}
		k.Grid[0], k.Group[0] = w.number("grid_size"), w.number("workgroup_size")
		k.Grid[1], k.Grid[2], k.Group[1], k.Group[2] = 1, 1, 1, 1
		r.counted[key], r.order = k, append(r.order, key)
	}
	k.Counters = append(k.Counters, counted{Name: r.opt.Syms.Intern(w.text("counter_name")), Device: int32(device), Value: value})
}

// countedAlone adds the kernels that have only counters, if they have times.
func (r *csvReader) countedAlone() {
	for _, key := range r.order {
		if k := r.counted[key]; k != nil && k.Start > 0 {
			r.process(key.process).kernel(k)
		}
	}
}

func (r *csvReader) copy(w *csvRow) {
	p := r.of(w)
	to, from := "destination_agent_id", "source_agent_id"
	if strings.Contains(w.text("direction"), "DEVICE_TO_HOST") {
		to, from = from, to
	}
	at := r.at(w, r.device(w, to, from))
	p.Copy(&at, w.text("direction"), -1)
}

// call adds a call, or a range or mark of roctx.
func (r *csvReader) call(w *csvRow) {
	p, tid, name := r.of(w), w.number("thread_id"), r.name(w.text("function"))
	from, to := trace.Time(w.number("start_timestamp")), trace.Time(w.number("end_timestamp"))
	switch domain := strings.ToUpper(w.text("domain")); {
	case strings.HasPrefix(domain, "HSA"):
		p.call(tid, driverCall, name, from, to, w.number("correlation_id"))
	case !strings.HasPrefix(domain, "MARKER"):
		p.call(tid, runtimeCall, name, from, to, w.number("correlation_id"))
	case from == to:
		p.mark(tid, name, from)
	default:
		p.Range(tid, name, from, to)
	}
}

// allocation adds an allocation on a device, or a free.
func (r *csvReader) allocation(w *csvRow) {
	r.of(w).allocation(w.text("operation"), w.text("address"), w.number("allocation_size"), r.agents[w.number("agent_id")].agent, trace.Time(w.number("end_timestamp")))
}
