package rows

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Meta is an export's description of itself.
type Meta struct {
	Product string // version of nsys that wrote the export: "2026.2.1.210"; "" before 2022
	Schema  string // version of the schema: "3.25.0"; "" before 2022
	Host    string // name of the machine that was profiled; "" is unknown

	// Absolute reports whether times are nanoseconds since 1970 (UTC). If it is false, the start of the session is
	// unknown, and times count from there.
	Absolute bool
	// SessionStart is the start of the session, in Unix ns; 0 is unknown.
	SessionStart trace.Time
	// Shift is the offset that nsys export added to the times in the file (--ts-shift, --ts-normalize), in ns.
	// Times of this package are without it.
	Shift int64
	// Duration is the length of the session in ns; -1 is unknown.
	Duration int64

	// GraphMode is how CUDA graphs were traced: "Graph" means that their kernels
	// are not in the file, "Node" that they are; "" is unknown.
	GraphMode string
	// Driver is the version of the driver of the GPUs: "550.54.14"; "" is unknown.
	Driver string
	// Partial are the tables and times that the export was limited to; "" is no limit.
	PartialTables, PartialTimes string

	GPUs    []GPU
	Devices []Device
}

// A GPU is a GPU of the machine.
type GPU struct {
	ID   int64
	Name string
	UUID string
}

// A Device is a process's number for a GPU: CUDA_VISIBLE_DEVICES renumbers them.
type Device struct {
	PID    int32
	Device int32 // as in rows of kernels
	GPU    int64 // GPU.ID; -1 is unknown
}

// metaExport holds pairs of a name and a text; the second table name is from before 2023.
var metaExport = tableSpec{
	names:   []string{"META_DATA_EXPORT", "EXPORT_META_DATA"},
	columns: []column{{name: "name", need: true}, {name: "value", need: true}},
}

var metaCapture = tableSpec{
	names:   []string{"META_DATA_CAPTURE"},
	columns: metaExport.columns,
}

// systemEnv has the name of the host, the version of its driver, and environment variables.
var systemEnv = tableSpec{
	names:   []string{"TARGET_INFO_SYSTEM_ENV"},
	columns: metaExport.columns,
}

// metaKeys is the allow-list of keys that are read from those tables. All others may hold commands, paths, or
// environment variables.
var metaKeys = []struct {
	spec  *tableSpec
	key   string
	store func(*Meta, string)
}{
	{&metaExport, "EXPORT_PRODUCT_VERSION", func(m *Meta, v string) { m.Product = v }},
	{&metaExport, "EXPORT_SCHEMA_VERSION", func(m *Meta, v string) { m.Schema = v }},
	{&metaExport, "EXPORT_CONFIG_TIME_SHIFT", func(m *Meta, v string) { m.Shift, _ = strconv.ParseInt(v, 10, 64) }},
	{&metaExport, "EXPORT_PARAM_TABLES_TO_EXPORT", func(m *Meta, v string) { m.PartialTables = v }},
	{&metaExport, "EXPORT_PARAM_TIMES_TO_EXPORT", func(m *Meta, v string) { m.PartialTimes = v }},
	{&metaCapture, "CUDA_GRAPH_TRACE_OPTIONS:MODE", func(m *Meta, v string) { m.GraphMode = v }},
	{&systemEnv, "NvDriverVersion", func(m *Meta, v string) { m.Driver = v }},
	{&systemEnv, "Hostname", func(m *Meta, v string) {
		if v != "UNKNOWN" { // nsys writes it for unknown values
			m.Host = v
		}
	}},
}

var sessionStart = tableSpec{
	names:   []string{"TARGET_INFO_SESSION_START_TIME"},
	columns: []column{{name: "utcEpochNs", need: true}},
}

var analysisDetails = tableSpec{
	names:   []string{"ANALYSIS_DETAILS"},
	columns: []column{{name: "duration", none: -1, need: true}},
}

// plausible reports whether a session can have started at a time: Nsight Systems is from this century.
func plausible(t trace.Time) bool {
	year := time.Unix(0, int64(t)).UTC().Year()
	return t > 0 && year >= 2010 && year < 2100
}

// describe reads everything but events.
func (s *Source) describe(c *connection) {
	m := &s.Meta
	for _, spec := range []*tableSpec{&metaExport, &metaCapture, &systemEnv} {
		s.scanOn(c, spec, func(cur *cursor) bool {
			key := cur.text(0)
			for _, k := range metaKeys {
				if k.spec == spec && k.key == key {
					k.store(m, cur.text(1))
				}
			}
			return true
		})
	}
	m.Duration = -1
	s.scanOn(c, &analysisDetails, func(cur *cursor) bool {
		m.Duration = cur.int(0)
		return false
	})
	s.scanOn(c, &sessionStart, func(cur *cursor) bool {
		m.SessionStart = trace.Time(cur.int(0))
		if m.Absolute = plausible(m.SessionStart); !m.Absolute {
			s.Diag(trace.NsysSessionStart, cur.sel.table, 0, m.SessionStart)
			m.SessionStart = 0
		}
		return false
	})
	// The start of the session is not shifted with the times.
	s.base = int64(m.SessionStart) - m.Shift
	if !m.Absolute {
		s.Diag(trace.NsysNoSessionStart, "", 0)
	}
	if m.PartialTables != "" || m.PartialTimes != "" {
		s.Diag(trace.NsysPartialExport, "", 0)
	}
	s.readTarget(c)
	s.Environment = s.environment(c)
	s.listUnread(c)
}

// rankVariables are the environment variables by which launchers pass a process its rank and the size of the
// world, the most specific first. They are all that is ever read of an environment, and only as numbers.
var rankVariables = [...]struct{ rank, size string }{
	{"RANK", "WORLD_SIZE"},                               // torchrun
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},     // Open MPI
	{"PMIX_RANK", "PMIX_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, // MPICH and others
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"}, // MVAPICH
	{"SLURM_PROCID", "SLURM_NTASKS"},               // srun
}

// FromEnvironment is the source of a rank in the environment of the program that nsys started.
const FromEnvironment = "environment"

// variableKey matches the key of an environment variable in META_DATA_CAPTURE, whose value is NAME="value". It
// belongs to the program that nsys started.
var variableKey = regexp.MustCompile(`^PROCESS_\d+:ENVIRONMENT_VARIABLE$`)

// environment returns the ranks in the environment of the program, best first. If several programs differ,
// there are none.
func (s *Source) environment(c *connection) []naming.Hint {
	values := map[string]int64{}
	s.scanOn(c, &metaCapture, func(cur *cursor) bool {
		if !variableKey.MatchString(cur.text(0)) {
			return true
		}
		name, value, _ := strings.Cut(cur.text(1), "=")
		if !isRankVariable(name) {
			return true
		}
		n, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32)
		if have, ok := values[name]; err != nil || n < 0 || ok && have != n {
			n = -1
		}
		values[name] = n
		return true
	})
	var hints []naming.Hint
	for _, v := range rankVariables {
		rank, ok := values[v.rank]
		size, known := values[v.size]
		if ok && known && rank >= 0 && rank < size {
			hints = append(hints, naming.Hint{From: FromEnvironment, Rank: int32(rank), Size: int32(size)})
		}
	}
	return hints
}

func isRankVariable(name string) bool {
	for _, v := range rankVariables {
		if name == v.rank || name == v.size {
			return true
		}
	}
	return false
}

// HostName returns the name of the machine, "" if nsys does not know it.
func (m *Meta) HostName() string {
	if strings.EqualFold(m.Host, "unknown") {
		return ""
	}
	return m.Host
}
