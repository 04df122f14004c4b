package chrometrace

import (
	"fmt"
	"math"
	"testing"
)

func TestCollectives(t *testing.T) {
	comm := func(args string) string {
		return `{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,` + abs + `,"dur":5,"args":{` + args + `}}`
	}
	r := parsed(t, `[`+comm(`"device": 0, "correlation": 12, "Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 9, "Group size": 8, "dtype": "BFloat16", "Process Group Name": "3", "Process Group Ranks": "[0, 1, 2]", "Seq": 42, "Comms Id": 17446744073709551557`)+`,`+
		comm(`"correlation": 13`)+`,`+comm(`"Comms Id": -5, "Seq": 0`)+`,
		{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,`+abs+`,"dur":1,"args":{"Collective name":"broadcast","Process Group Name":"default_pg"}},
		{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,`+abs+`,"dur":1,"args":{"External id":5}},
		{"ph":"X","cat":"kernel","name":"void vllm::cross_device_reduce_1stage<half, 8>()","pid":0,"tid":7,`+abs+`,"dur":1,"args":{"correlation":1}},
		{"ph":"X","cat":"cpu_op","name":"vllm::all_reduce","pid":1,"tid":1,`+abs+`,"dur":1,"args":{}},
		{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,`+abs+`,"dur":1,"args":{"correlation":1}},
		{"ph":"X","cat":"collective_comm","name":"xccl::allreduce","pid":1,"tid":1,`+abs+`,"dur":1}]`)
	var got []string
	for i := range r.Collectives.Len() {
		c := r.Collectives.At(i)
		got = append(got, fmt.Sprintf("%d %v id %d seq %d %s group %s %s %s %d/%d of %d", c.Event, c.OnGPU, c.CommsID, c.Seq, r.name(c.Op), r.name(c.Group), r.name(c.Ranks), r.name(c.Dtype), c.In, c.Out, c.GroupSize))
	}
	want := []string{
		"0 true id 17446744073709551557 seq 42 allreduce group 3 [0, 1, 2] BFloat16 8/9 of 8",
		"1 true id 0 seq -1  group    -1/-1 of -1",
		fmt.Sprintf("2 true id %d seq 0  group    -1/-1 of -1", uint64(math.MaxUint64-4)),
		"3 false id 0 seq -1 broadcast group default_pg   -1/-1 of -1",
		"5 true id 0 seq -1  group    -1/-1 of -1",
		"8 false id 0 seq -1  group    -1/-1 of -1",
	}
	if d := diff(got, want); d != "" {
		t.Error(d)
	}
	if _, work := r.links(); work != 4 {
		t.Errorf("%d kernels have a correlation", work)
	}
}
