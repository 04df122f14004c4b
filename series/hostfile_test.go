package series

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A kernel log without a host name belongs to the known host after which its file or folder is named. One with a host name keeps it.
func TestHostsOfKernelLogs(t *testing.T) {
	for _, c := range []struct{ file, says, want string }{
		{"in/dmesg/node-10.log", "", "node-10"},
		{"in/node-1/dmesg", "", "node-1"},
		{"dmesg-node-1.txt.gz", "", "node-1"},
		{"dmesg.log", "", ""},
		{"node-101.dmesg", "", ""},
		{"in/node-1/kern.log", "node-10", "node-10"},
	} {
		set := New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("metrics.json", "Prometheus")
		for _, host := range []string{"node-1", "node-10"} {
			f.Place(Place{Server: f.Server(Server{Host: host}), Rank: trace.NoRank, GPU: 0})
		}
		f = set.Fill(c.file, "kernel log")
		f.Instant(Instant{Time: 1e18, Place: f.Place(Place{Server: f.Server(Server{Host: c.says}), Rank: trace.NoRank, GPU: NoGPU}), Kind: Hardware, Count: 1}, "Xid 79 of GPU 0000:19:00")
		set.Finish(Known{})
		if got := set.Servers[set.Places[set.Instants[0].Place].Server].Host; got != c.want {
			t.Errorf("%s: %q, want %q", c.file, got, c.want)
		}
	}
}
