package gpu

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
)

const ms = 1_000_000

// gpuOf is a device of 100 ms: ms of exposed communication, of exposed copies, and idle by
// reason; the rest computes.
func gpuOf(comm, copies int64, idle map[Reason]int64) GPU {
	g := GPU{Rank: "TP0", Last: 100 * ms, Rows: FewRows}
	compute := 100 - comm - copies
	for reason, t := range idle {
		g.Waits.Time[reason], g.Waits.Gaps[reason] = t*ms, 1
		g.Idle.Time[OtherWait] += t * ms
		compute -= t
	}
	g.Running[1<<profile.ClassCommunication] = comm * ms
	g.Running[1<<profile.ClassMemory] = copies * ms
	g.Running[1<<profile.ClassCompute] = compute * ms
	return g
}

// What is found of devices, by topic and weight.
func TestFindings(t *testing.T) {
	type found struct {
		topic  string
		weight float64
	}
	few := gpuOf(0, 0, map[Reason]int64{HostWork: 90})
	few.Rows, few.Last = FewRows-1, shortest-1
	for _, test := range []struct {
		name string
		gpus []GPU
		want []found
	}{
		{"busy", []GPU{gpuOf(10, 5, map[Reason]int64{HostWork: 10, LaunchGap: 10})}, nil},
		{"the host is late", []GPU{gpuOf(10, 0, map[Reason]int64{HostWork: 40})}, []found{{"host", 0.4}}},
		{"each reason is small, the sum is not", []GPU{gpuOf(0, 0, map[Reason]int64{HostWork: 18, LaunchGap: 16})}, []found{{"host", 0.34}}},
		{"gaps of other reasons", []GPU{gpuOf(0, 0, map[Reason]int64{Dependency: 50, NotRecorded: 14})}, []found{{"idle", 0.64}}},
		{"perhaps no requests", []GPU{gpuOf(10, 0, map[Reason]int64{BetweenSteps: 45})}, nil},
		{"most of the time between steps", []GPU{gpuOf(0, 0, map[Reason]int64{BetweenSteps: 60})}, []found{{"steps", 0.6}}},
		{"calls that cost, though the sum is small", []GPU{gpuOf(0, 0, map[Reason]int64{AfterSync: 12, HostWork: 5})}, []found{{"host", 0.12}}},
		{"communicates", []GPU{gpuOf(20, 0, nil), gpuOf(40, 0, nil)}, []found{{"communication", 0.3}}},
		{"copies", []GPU{gpuOf(0, 97, nil)}, []found{{"copies", 0.97}}},
		{"a try", []GPU{few}, nil},
		{"no device", nil, nil},
	} {
		var got []found
		for _, f := range (&GPUs{GPUs: test.gpus}).Findings(nil) {
			got = append(got, found{f.Topic, f.Weight})
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
