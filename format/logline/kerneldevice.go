package logline

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// A deviceSign matches the kernel's fault reports about a network device, PCIe, an AMD GPU, the host, or a
// process. It extracts the device and words the report.
type deviceSign struct {
	has  string // text in the line, checked before the expression
	line *lazyregexp.Regexp
	says string // with $1 and $2 from the expression
	more bool   // continues an earlier report
}

var deviceSigns = []deviceSign{
	{"mlx5_", lazyregexp.New(`(mlx5_\w+)/\d+: QP \d+ error: ([a-z ]+[a-z]) ?\(`), "RDMA device $1: $2", false},
	{"mlx5_core", lazyregexp.New(`mlx5_core [0-9a-f:.]+ (\w+): (?:Port: \d+ )?Link (?:down|DOWN)`), "the link of network device $1 went down", false},
	{"mlx5_core", lazyregexp.New(`mlx5_core ([0-9a-f:.]+).*(device's health compromised|[Cc]able error|[Ff]atal error|High temperature)`), "network device $1: $2", false},
	{"AER: ", lazyregexp.New(`AER: (?:Multiple )?(Uncorrect(?:ed|able) \((?:Non-)?Fatal\)) error (?:message )?received(?: from)?:? ([0-9a-f:.]+)`), "PCIe error of $2: $1", false},
	{"PCIe Bus Error", lazyregexp.New(`([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): PCIe Bus Error: severity=(Uncorrect(?:ed|able) \((?:Non-)?Fatal\))`), "PCIe error of $1: $2", false},
	{"RmInitAdapter failed", lazyregexp.New(`NVRM: GPU ([0-9A-Fa-f:.]+): RmInitAdapter failed()`), "the driver cannot start GPU $1", false},
	{"amdgpu", lazyregexp.New(`amdgpu ([0-9a-f:.]+): (?:amdgpu: )?\[\w+\] (?:(?:no-)?retry )?(page fault)`), "$2 of GPU $1", false},
	{"VM_L2_PROTECTION_FAULT_STATUS", lazyregexp.New(`amdgpu ([0-9a-f:.]+): (?:amdgpu: )?VM_L2_PROTECTION_FAULT_STATUS:()`), "page fault of GPU $1", true},
	{"amdgpu", lazyregexp.New(`amdgpu ([0-9a-f:.]+): (?:amdgpu: )?(?:\[drm\] )?(?:\*ERROR\* )?(ring \S+ timeout)`), "hang of GPU $1: $2", false},
	{"MES failed to respon", lazyregexp.New(`amdgpu ([0-9a-f:.]+): .*(MES failed to respond)`), "hang of GPU $1: its scheduler (MES) does not respond", false},
	{"amdgpu_job_timedout", lazyregexp.New(`amdgpu_job_timedout(?:\]| \[amdgpu\]\])?:? ?(?:\*ERROR\* )?(ring \S+ timeout)()`), "hang of a GPU of AMD: $1", false},
	{"amdgpu", lazyregexp.New(`amdgpu ([0-9a-f:.]+): (?:amdgpu: )?GPU (reset)(?: begin|\(\d+\) succeeded)`), "$2 of GPU $1", false},
	{"amdgpu", lazyregexp.New(`amdgpu ([0-9a-f:.]+): (?:amdgpu: )?.*?([1-9]\d*) uncorrectable hardware errors detected in`), "uncorrectable errors of GPU $1: $2 of its memory or logic", false},
	{"Kernel panic", lazyregexp.New(`Kernel panic - not syncing: ([^\r\n]{1,80})()`), "the kernel of the host panicked: $1", false},
	{"BUG: ", lazyregexp.New(`BUG: (unable to handle [A-Za-z ]*(?:dereference|request|fault)|soft lockup - CPU#\d+ stuck for \d+s)()`), "a bug in the kernel of the host: $1", false},
	{"blocked for more than", lazyregexp.New(`INFO: task (\S{1,60}):\d+ blocked for more than (\d+) seconds`), "process $1 hangs in the kernel of the host for more than $2 s", false},
	{"segfault at", lazyregexp.New(`([\w.:/-]+)\[\d+\]: segfault at .*? in ([\w.+-]+)\[`), "process $1 crashed: a segmentation fault in $2", false},
	{"nvidia-peermem", lazyregexp.New(`nvidia-peermem \w+:\d+ ERROR (detected invalid context)()`), "nvidia-peermem: $1", false},
	{"Machine Check", lazyregexp.New(`mce: \[Hardware Error\]: CPU (\d+): Machine Check(?: Exception)?: ()`), "the machine reports a machine check of CPU $1", false},
	{"EDAC", lazyregexp.New(`EDAC \w+: [1-9]\d* UE .*? on (\S+)()`), "uncorrectable errors of the memory of the host: $1", false},
	{"[Hardware Error]", lazyregexp.New(`\[Hardware Error\]: (?:event severity: (fatal|recoverable))()`), "the machine reports a $1 hardware error", false},
}

// ofDevice returns what a line reports about a device, the host, or a process, and whether it continues an
// earlier report; "" if it reports nothing known.
func ofDevice(line []byte) (says string, more bool) {
	for i := range deviceSigns {
		s := &deviceSigns[i]
		if !bytes.Contains(line, []byte(s.has)) {
			continue
		}
		if m := s.line.FindSubmatchIndex(line); m != nil {
			return string(s.line.Compiled().Expand(nil, []byte(s.says), line, m)), s.more
		}
	}
	return "", false
}
