package serverlog

import (
	"strings"
	"testing"
)

// Logs of other programs are recognized if at least a third of their lines have a timestamp and a level. Other texts are not.
func TestPrograms(t *testing.T) {
	for text, want := range map[string]bool{
		"E0817 20:53:20.123456       1 gate.go:12] \"no pod\" err=\"none is ready\"\n":                                                                                                                            true,
		"2026-08-17T20:53:20.123Z  INFO keeper: it begins\nand goes on\n":                                                                                                                                         true,
		"time=\"2026-08-17T20:53:20Z\" level=error msg=\"cannot mount\" error=\"no such disk\"\n":                                                                                                                 true,
		`{"level":"error","ts":1787000000.5,"caller":"gate/gate.go:1","msg":"lost","error":"no peer"}` + "\n":                                                                                                     true,
		`{"start_time":"2026-08-17T20:53:20Z","method":"POST","response_code":"504"}` + "\n":                                                                                                                      true,
		"The server printed:\n\n2026-08-17T20:53:20.123Z  INFO keeper: it begins\n\nWhat does it mean?\nI do not know.\nDo you?\n":                                                                                false,
		`{"level":"info","ts":"2026-08-17T20:53:20Z","msg":"begins"}` + "\npanic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:\nmain.pick(0xc0004a2000)\n\t/w/pick.go:5 +0x31\n": true,
		`{"name":"a","version":"1.0","message":"hello"}` + "\n":                                                                                                                                                   false,
		"2026-08-17T20:53:20.123Z\tERROR\tsetup\tgate.go:12\tcannot start\t{\"error\": \"no pod\"}\nmain.main\n\t/w/gate.go:12\nruntime.main\n\t/go/proc.go:283\n":                                                true,
		"2026-08-17\t12\tx\n": false,
		"time,level\n1,2\n":   false,
	} {
		if got := Program.Sniff([]byte(text)); got != want {
			t.Errorf("%t, want %t: %s", got, want, text)
		}
	}
}

// Errors of other programs are reported with their cause, but without the parts of requests they
// quote. Failed responses are counted, with the gateway's reason.
func TestProgramsComplain(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"E0817 20:53:20.123456       1 gate.go:12] \"no pod\" err=\"none is ready\" requestBody=\"a secret\"\n", "an error: no pod: none is ready"},
		{"time=\"2026-08-17T20:53:20Z\" level=error msg=\"cannot mount\" error=\"no such disk\"\n", "an error: cannot mount: no such disk"},
		{`{"level":"error","ts":1787000000.5,"caller":"gate/gate.go:1","msg":"lost","error":"peer \"b\" is gone"}` + "\n", "an error: lost: peer \"b\" is gone"},
		{`{"start_time":"2026-08-17T20:53:20Z","method":"POST","response_code":"504","response_code_details":"ext_timeout"}` + "\n", "an error: requests are answered with an error by the gateway itself: ext_timeout"},
		{"2026-08-17T20:53:20.123Z  WARN keeper: cannot renew: Connection refused by the store, failed\n", "a warning: cannot renew: Connection refused by the store, failed"},
		{`{"level":"info","ts":"2026-08-17T20:53:20Z","msg":"begins"}` + "\npanic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:\n", "panicked: runtime error: index out of range [3] with length 3"},
		{`{"level":"info","ts":"2026-08-17T20:53:20Z","msg":"begins"}` + "\npanic: what a client asked\n", "panicked"},
		{"2026-08-17T20:53:20.123Z\tERROR\tsetup\tgate.go:12\tcannot start\t{\"ns\": \"a\", \"error\": \"no \\\"b\\\" here\"}\nmain.main\n\t/w/gate.go:12\n", "an error: cannot start: no \"b\" here"},
		{"1787000000.25\tpanic\tcannot go on\n", "an error: cannot go on"},
		{"2026-08-17T20:53:20.123Z  WARN keeper: it failed once\n2026-08-17T20:53:21.123Z ERROR keeper: it is lost\n", "an error: it is lost"},
	} {
		set, _, _ := readText(t, "x", strings.NewReader(c.text))
		got := ""
		for _, x := range set.Instants {
			got += set.Syms.Name(x.Text)
		}
		if got != c.want || len(set.Instants) != 1 || set.Instants[0].Time/60e9 != 1787000000/60 {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Log lines of Ray's and UCX's C++ code have their own timestamp formats. A signal that UCX caught means that the process ended.
func TestNativeComplaints(t *testing.T) {
	for text, want := range map[string]string{
		"[2026-08-17 20:53:20,907 C 149 199] node.cc:170: This node was lost.\n":                              "an error: This node was lost.",
		"[2026-08-17 20:53:20,907 W 149 199] node.cc:170: It was killed.\n":                                   "a warning: It was killed.",
		"[1787000000.684686] [n1:99:0]  dv.c:452  UCX  ERROR create(CQ) failed on mlx5_1\n":                   "an error: create(CQ) failed on mlx5_1",
		"[n1:12796:1:13303] Caught signal 11 (Segmentation fault: address not mapped)\n==== backtrace ====\n": "a segmentation fault",
	} {
		set, _, _ := readText(t, "x", strings.NewReader(text))
		if len(set.Instants) != 1 || !strings.HasPrefix(set.Syms.Name(set.Instants[0].Text)+".", want) || !Program.Sniff([]byte(text)) && !Format.Sniff([]byte(text)) {
			t.Errorf("%s: %v", want, set.Instants)
		}
	}
}
