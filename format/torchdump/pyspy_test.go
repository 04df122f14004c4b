package torchdump

import (
	"io"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// secret is in everything that must not be kept.
const secret = "sk-CANARY-7f3a"

const asText = `Process 309: sglang::scheduler_TP3
Python v3.12.3 (/usr/bin/python3.12)

Thread 311 (idle): "Thread-1"
    wait (threading.py:359)
Thread 309 (active): "MainThread"
    cuStreamSynchronize (libcuda.so.1)
    forward (model.py:120)
        Locals:
            prompt: "` + secret + `"
--------------------------------
Process 310: sglang::detokenizer --api-key ` + secret + `
Python v3.12.3 (/usr/bin/python3.12)

Thread 310 (idle): "MainThread"
    recv (zmq.py:9)
`

const asJSON = `[{"pid":309,"thread_id":1401,"thread_name":"Thread-1","os_thread_id":311,"active":false,"owns_gil":false,"frames":[{"name":"wait","filename":"/usr/lib/python3.12/threading.py","module":null,"short_filename":"threading.py","line":359,"locals":null,"is_entry":true,"is_shim_entry":false}],"process_info":{"pid":309,"command_line":"sglang::scheduler_TP3","parent":null}},
{"pid":309,"thread_id":1402,"thread_name":null,"os_thread_id":309,"active":true,"owns_gil":false,"frames":[{"name":"cuStreamSynchronize","filename":"/usr/lib/libcuda.so.1","module":"libcuda","short_filename":"libcuda.so.1","line":0,"locals":null,"is_entry":false,"is_shim_entry":false},{"name":"forward","filename":"/srv/model.py","module":null,"short_filename":"model.py","line":120,"locals":[{"name":"prompt","addr":1,"arg":true,"repr":"` + secret + `"}],"is_entry":true,"is_shim_entry":false}],"process_info":{"pid":309,"command_line":"sglang::scheduler_TP3","parent":null}},
{"pid":310,"thread_id":1403,"thread_name":"MainThread","os_thread_id":310,"active":false,"owns_gil":false,"frames":[{"name":"recv","filename":"/x/zmq.py","module":null,"short_filename":"zmq.py","line":9,"locals":null,"is_entry":true,"is_shim_entry":false}],"process_info":{"pid":310,"command_line":"sglang::detokenizer --api-key ` + secret + `","parent":null}}]`

func read(name, text string) (*recorder.InFlight, *trace.Diags, error) {
	set, diags := recorder.NewInFlight(trace.NewSymbols()), &trace.Diags{}
	in := &format.Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	_, err := PySpy.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Flight: set})
	set.Finish(nil)
	return set, diags, err
}

// Both forms give the same processes, and neither keeps arguments or values.
func TestBothForms(t *testing.T) {
	for form, text := range map[string]string{"text": asText, "JSON": asJSON} {
		if !sniffPySpy([]byte(text)) {
			t.Errorf("%s is not recognized", form)
		}
		set, _, err := read("spy.txt", text)
		if err != nil || len(set.Dumps) != 2 {
			t.Fatalf("%s: %d dumps, %v", form, len(set.Dumps), err)
		}
		d := set.Dumps[0]
		if d.PID != 309 {
			d = set.Dumps[1]
		}
		main := d.Threads[0]
		stack := d.Stacks[main.Stack]
		if d.Title != "sglang::scheduler_TP3" || d.Of.TP != 3 || main.Name != "MainThread" || main.State != "active" || len(d.Threads) != 2 || len(stack) != 2 ||
			set.Syms.Name(stack[1].Name) != "forward" || set.Syms.Name(stack[1].File) != "model.py" || stack[1].Line != 120 {
			t.Errorf("%s: %+v, %+v", form, d, stack)
		}
		for i := range set.Syms.Len() {
			if strings.Contains(set.Syms.Name(trace.Sym(i)), secret) {
				t.Errorf("%s: a secret is kept", form)
			}
		}
		for _, d := range set.Dumps {
			if strings.Contains(d.Title, secret) {
				t.Errorf("%s: a key is kept", form)
			}
		}
	}
}

// A truncated dump is used up to the cut.
func TestCut(t *testing.T) {
	set, diags, err := read("spy.json", asJSON[:len(asJSON)*2/3])
	if err != nil || len(set.Dumps) == 0 || len(diags.All()) == 0 {
		t.Errorf("%d dumps, %d messages, %v", len(set.Dumps), len(diags.All()), err)
	}
}

// A rank in the file name is that of its only process.
func TestRankInName(t *testing.T) {
	one, _, _ := strings.Cut(asText, "----")
	if set, _, err := read("dir/pyspy_rank7.txt", one); err != nil || set.Dumps[0].Rank != 7 {
		t.Errorf("%v, %v", set.Dumps, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(asText)
	f.Add(asJSON)
	f.Fuzz(func(t *testing.T, text string) {
		set, _, _ := read("spy.txt", text)
		for _, d := range set.Dumps {
			for _, th := range d.Threads {
				if int(th.Stack) >= len(d.Stacks) {
					t.Fatal("a stack that is not there")
				}
			}
		}
	})
}

// A dump that a server printed into its log does not turn the log into a dump.
func TestSniffPySpy(t *testing.T) {
	for head, want := range map[string]bool{
		asText:                     true,
		"$ py-spy dump\n" + asText: true,
		"[2026-04-03 20:06:34 DP1 TP0] Watchdog timeout (self.watchdog_timeout=300)\n[2026-04-03 20:06:34 DP0 TP0] Pyspy dump for PID 309:\n" + asText: false,
	} {
		if got := sniffPySpy([]byte(head)); got != want {
			t.Errorf("%.60q: %v, want %v", head, got, want)
		}
	}
}
