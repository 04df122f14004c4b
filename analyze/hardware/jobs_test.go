package hardware

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// GPUs in metrics are matched to ranks by UUID, in any notation, or else by host and index
// if the process saw all GPUs of its host. A GPU that two ranks claim is not matched.
func TestJoin(t *testing.T) {
	gpus := func() []*Device {
		return []*Device{{Host: "node1.rack", GPU: 0, UUID: "GPU-aa-0"}, {Host: "node1.rack", GPU: 1, UUID: "GPU-aa-1"}, {Host: "node2", GPU: 0}, {Host: "node2", GPU: 1}}
	}
	for _, c := range []struct {
		name string
		uses []Use
		want string // for each GPU: its rank, and how it was matched
	}{
		{"UUID before index", []Use{{Rank: "TP0", Host: "node1", UUID: "AA1", GPU: 0}, {Rank: "TP1", UUID: "gpu-aa-0", GPU: 1}}, "TP1 UUID, TP0 UUID, , "},
		{"another UUID is another GPU", []Use{{Rank: "TP0", Host: "node1", UUID: "bb", GPU: 0}}, ", , , "},
		{"host and index", []Use{{Rank: "TP0", Host: "NODE1", GPU: 1}, {Rank: "TP1", Host: "node2.rack", GPU: 1, Sees: 2}}, ", TP0 host and index, , TP1 host and index"},
		{"a process that sees one of two", []Use{{Rank: "TP0", Host: "node1", GPU: 0, Sees: 1}}, ", , , "},
		{"claimed twice", []Use{{Rank: "TP0", Host: "node2", GPU: 0}, {Rank: "DP1 TP0", Host: "node2", GPU: 0}, {Rank: "DP2 TP0", Host: "node2", GPU: 0}}, ", , , "},
		{"no host, two in metrics", []Use{{Rank: "TP0", GPU: 0}}, ", , , "},
	} {
		list := gpus()
		join(list, c.uses)
		if got := joined(list); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	one := gpus()[2:]
	join(one, []Use{{Rank: "TP0", GPU: 0}, {Rank: "TP1", GPU: 1}})
	if got := joined(one); !strings.HasPrefix(got, "TP0 index alone") || !strings.Contains(got, ", TP1 index alone") {
		t.Errorf("one host: %q", got)
	}
	// If there is only one host, a dump may use its ID instead of its name.
	one = gpus()[2:]
	join(one, []Use{{Rank: "TP0", Host: "5c9d15ce", GPU: 0}, {Rank: "TP1", Host: "5c9d15ce", GPU: 1}})
	if got := joined(one); !strings.HasPrefix(got, "TP0 index alone") || !strings.Contains(got, ", TP1 index alone") {
		t.Errorf("one host by its ID: %q", got)
	}
	one = gpus()[2:]
	join(one, []Use{{Rank: "TP0", Host: "5c9d15ce", GPU: 0}, {Rank: "TP1", Host: "a1", GPU: 1}})
	if got := joined(one); got != ", " {
		t.Errorf("two hosts by their IDs: %q", got)
	}
}

func joined(list []*Device) string {
	var parts []string
	for _, d := range list {
		text := ""
		if d.use != nil {
			text = d.use.Rank + " " + d.by
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// A host with idle GPUs is not the one that ranks ran on.
func TestJoinWithIdleHosts(t *testing.T) {
	var list []*Device
	for host := range 3 {
		for gpu := range 2 {
			list = append(list, &Device{Host: fmt.Sprintf("node%d", host), GPU: int32(gpu), util: []series.Sample{{Time: begin, Value: 90 * float64(host%2)}}})
		}
	}
	join(list, []Use{{Rank: "TP0", GPU: 0, Sees: 2, From: begin, To: begin + sec}, {Rank: "TP1", GPU: 1, Sees: 2, From: begin, To: begin + sec}})
	if got := joined(list); !strings.HasPrefix(got, ", , TP0 index alone") || !strings.Contains(got, ", TP1 index alone") || !strings.HasSuffix(got, ", , ") {
		t.Errorf("%q", got)
	}
}

// A lower clock during a rank's recording is attributed to that rank, and one at another
// time is not. Then the clock during the recording is as high as that of other GPUs.
func TestClockOfRank(t *testing.T) {
	slow := []plan{{host: 0, gpu: 3, from: begin + 600*sec, to: begin + 2000*sec, clock: 1410, bits: 0x48}}
	for at, lower := range map[trace.Time]bool{begin + 1700*sec: true, begin + 100*sec: false} {
		uses := []Use{{Rank: "TP3", Host: "node1", GPU: 3, From: at, To: at + 2*sec}}
		found, _ := Clocks(scraped(1, slow, true, true), uses)
		if len(found) == 0 || !strings.HasPrefix(found[0].Text, "the SM clock of TP3's GPU was 1,") || (found[0].At.RankName() == "TP3") != lower {
			t.Fatalf("%+v", found)
		}
		text, equal := CompareClock(scraped(1, slow, true, true), uses, place.Named("TP3"))
		if equal == lower || !strings.Contains(text, "GPU 3 of node1, by host and index") {
			t.Errorf("%q, %v", text, equal)
		}
	}
}

// If metrics report that heat slows a GPU down, one peer is enough to compare with; otherwise it is not.
func TestOnePeer(t *testing.T) {
	for _, bits := range []float64{0x48, 0} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("metrics.json", "Prometheus range")
		server := f.Server(series.Server{Host: "node1"})
		for gpu := range 2 {
			p := f.Place(series.Place{Server: server, Rank: trace.NoRank, GPU: int32(gpu)})
			clock, why := f.Series(series.SMClock, p), f.Series(series.Throttling, p)
			for n := range 8 {
				at := begin + 15*sec*trace.Time(n)
				f.Add(clock, at, 1980-570*float64(gpu))
				f.Add(why, at, bits*float64(gpu))
			}
		}
		set.Finish(series.Known{})
		if found, _ := Clocks(set, nil); (len(found) == 1) != (bits != 0) {
			t.Errorf("bits %x: %+v", int(bits), found)
		}
	}
}
