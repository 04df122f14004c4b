package rows

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
)

// rankVariables are the environment variables that launchers tell a process its
// rank and the size of the world by, the most specific first. They are all that is
// ever read of an environment, and only as numbers.
var rankVariables = [...]struct{ rank, size string }{
	{"RANK", "WORLD_SIZE"},                               // torchrun
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},     // Open MPI
	{"PMIX_RANK", "PMIX_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, // MPICH and others
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"}, // MVAPICH
	{"SLURM_PROCID", "SLURM_NTASKS"},               // srun
}

// FromEnvironment says that the environment of the program that nsys started tells a rank.
const FromEnvironment = "environment"

// variableKey is the key under which META_DATA_CAPTURE has a variable of the program
// that nsys started, as NAME="value".
var variableKey = regexp.MustCompile(`^PROCESS_\d+:ENVIRONMENT_VARIABLE$`)

// environment returns the ranks that the environment of the program tells, best
// first. If several programs differ, there are none.
func (s *Source) environment(c *connection) []profile.Hint {
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
	var hints []profile.Hint
	for _, v := range rankVariables {
		rank, ok := values[v.rank]
		size, known := values[v.size]
		if ok && known && rank >= 0 && rank < size {
			hints = append(hints, profile.Hint{From: FromEnvironment, Rank: int32(rank), Size: int32(size)})
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

// HostName returns the name of the machine, "" where nsys does not know it.
func (m *Meta) HostName() string {
	if strings.EqualFold(m.Host, "unknown") {
		return ""
	}
	return m.Host
}
