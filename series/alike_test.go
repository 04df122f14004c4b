package series

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Servers with different names in logs and metrics are merged if they report the same values at the
// same times. Queues that grow together, as behind a load balancer, are not enough.
func TestServersThatSayTheSame(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		const servers, n = 3, 120
		queues := [servers + 1][]float64{}
		for i := range queues {
			q := 0.0
			for k := range n {
				grows := 0.0
				if k > n/2 {
					grows = 20 // on all servers
				}
				q = max(0, q+grows+10*random.NormFloat64())
				queues[i] = append(queues[i], math.Round(q))
			}
		}
		set := New(trace.NewSymbols(), &trace.Diags{})
		add := func(name, encoding string, server int, late trace.Time) {
			f := set.Fill(name, encoding)
			p := f.Place(Place{Server: f.Server(Server{Name: name, Engine: "SGLang"}), Rank: trace.NoRank, GPU: NoGPU})
			for k, q := range queues[server] {
				at := trace.Time(1787000000+15*k)*1e9 + late
				f.Add(f.Series(Running, p), at, 64)
				f.Add(f.Series(Queued, p), at, q)
			}
		}
		for i, name := range []string{"a", "b", "c"} {
			add(name+".log", "server log", i, 0)
		}
		for i, name := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.4"} { // the last one has no log
			add(name, "Prometheus range", []int{0, 1, 3}[i], 1e9)
		}
		set.Finish(Known{})
		for i, want := range []string{"a.log", "b.log", "c.log", "a.log", "b.log", "10.0.0.4"} {
			if got := set.Servers[i].Name; got != want {
				t.Errorf("seed %d: server %d is %s, not %s", seed, i, got, want)
			}
		}
		for server, want := range map[int]string{0: "a.log", 3: "10.0.0.1"} { // with nothing else to compare with
			set = New(trace.NewSymbols(), &trace.Diags{})
			add("a.log", "server log", 0, 0)
			add("10.0.0.1", "Prometheus range", server, 1e9)
			set.Finish(Known{})
			if got := set.Servers[1].Name; got != want {
				t.Errorf("seed %d: metrics of server %d alone are of %s", seed, server, got)
			}
		}
	}
}
