package profile

import (
	"fmt"
	"strconv"
	"strings"
)

// A Version is that of some software by which a rank ran, as its profiler noted it.
type Version struct{ Of, Is string }

// DriverVersion is the key of [Meta.Attributes] under which an export has the version of the
// driver of the GPUs.
const DriverVersion = "driver_version"

// versionSuffix ends the keys of versions: those of PyTorch's profiler, and what servers add,
// such as vllm_version.
const versionSuffix = "_version"

// versionNames are the usual names of software of which the key does not say it well. CUDA
// counts versions in one number: 12090 is 12.9.
var versionNames = map[string]struct {
	name  string
	count bool
}{
	"cuda_runtime_version": {"CUDA runtime", true}, "cuda_driver_version": {"CUDA driver", true},
	"hip_runtime_version": {"HIP runtime", false}, "hip_driver_version": {"HIP driver", false},
	"cupti_version": {"CUPTI", false}, DriverVersion: {"GPU driver", false},
}

// Versions returns those that the file tells, in its order. Users add what they like to a trace, so
// a long value is none.
func (m *Meta) Versions() (list []Version) {
	const long = 40
	for _, a := range m.Attributes {
		of, ok := strings.CutSuffix(a.Key, versionSuffix)
		if !ok || of == "" || a.Value == "" || len(a.Value) > long {
			continue
		}
		v := Version{of, a.Value}
		if known, ok := versionNames[a.Key]; ok {
			v.Of = known.name
			if n, err := strconv.Atoi(a.Value); known.count && err == nil {
				v.Is = fmt.Sprintf("%d.%d", n/1000, n%1000/10)
			}
		}
		list = append(list, v)
	}
	return list
}
