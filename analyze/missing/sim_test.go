package missing

import (
	"bytes"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/internal/testinput"
	"github.com/sgtrace/sgtrace/internal/testset"
)

// A DP rank that hangs is found, with its time and the requests that were in its batches.
func TestRateOfHungRanks(t *testing.T) {
	seeds := testset.Seeds(t)
	right := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := hung(seed)
		s, truth := testset.Simulated(t, c)
		found := FindSilences(s)
		h := truth.Hang
		if len(found) != 1 || int(found[0].Where.Rank.DP) != h.DPRank || found[0].Where.Role.String() != h.Role {
			t.Logf("seed %d: found %+v, planted %+v", seed, found, h)
			return false
		}
		x := &found[0]
		skew := int64(c.DecodeSkew.Abs()) + 1_000_000
		if d := int64(x.Since) - h.LastNs; max(d, -d) > skew || len(x.InFlight) < h.Running {
			t.Logf("seed %d: %s; planted %+v", seed, x.Text(), h)
			return false
		}
		return true
	})
	testset.Rate(t, "a rank that hangs", right, len(seeds), 99)
}

// hung is a deployment in which a DP rank hangs in the middle, while requests are on it.
func hung(seed uint64) simulator.Config {
	c := testset.Calm(seed)
	c.Mode, c.Rate = testset.AllModes[seed%3], 12
	c.Output.Median, c.Output.Max = 40, 200
	c.Incident.Onset = 0.5
	c.Hang = simulator.Hang{AtOnset: true, DP: int(seed % 2)}
	return c
}

// A DP rank that hangs while nothing is on it is found by what is sent to it later, and one
// that gets nothing any more is not silent.
func TestRateOfIdleHungRanks(t *testing.T) {
	seeds := testset.Seeds(t)
	right := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := hung(seed)
		c.Requests, c.Rate, c.Output.Median = 120, 2, 5
		s, truth := testset.Simulated(t, c)
		found := FindSilences(s)
		h := truth.Hang
		if len(found) != 1 || int(found[0].Where.Rank.DP) != h.DPRank || h.Running == 0 && len(found[0].InFlight) == 0 && len(found[0].Stranded) < leastStranded {
			t.Logf("seed %d: found %+v, planted %+v", seed, found, h)
			return false
		}
		c.Hang, c.Incident = simulator.Hang{}, simulator.Incident{Onset: 0.5, DPRank: int(seed % 2), DPShare: 1}
		s, _ = testset.Simulated(t, c)
		if found := FindSilences(s); len(found) > 0 {
			t.Logf("seed %d: a rank drained: %+v", seed, found)
			return false
		}
		return true
	})
	testset.Rate(t, "a rank that hangs while it is idle, and none that drained", right, len(seeds), 98)
}

// Nobody is silent in a dump whose end is missing, as of a running server, nor in one that
// lost spans. No more is told to be lost than is: of what is
// lost together with all that shows it nobody knows, such as what one rank wrote for a request,
// or what a process wrote last: a tenth shows at least.
func TestRateOfLossAndNoSilence(t *testing.T) {
	seeds := testset.Seeds(t)
	for _, by := range testset.Losses {
		var mu sync.Mutex
		silent, wrong := 0, 0
		testset.EachSeed(seeds, func(seed uint64) {
			const share = 0.05
			dump, _ := testinput.Simulate(t, testset.Deployment(seed, testset.Calm(seed)))
			dump = dump[:bytes.LastIndexByte(dump[:len(dump)/3*2], '\n')+1]
			whole := testset.BuildSet(t, "running", bytes.NewReader(dump))
			lossy := testset.BuildSet(t, "lost", bytes.NewReader(testset.Lose(dump, by, share, seed)))
			found := append(FindSilences(whole), FindSilences(lossy)...)
			none, some := FindLoss(whole), FindLoss(lossy)
			mu.Lock()
			defer mu.Unlock()
			for i := range found {
				silent++
				t.Logf("seed %d: %s", seed, found[i].Text())
			}
			really := 1 - float64(lossy.Len())/float64(whole.Len()) // about share: batches differ
			if none.Lost > 0 || some.Share() > 1.05*really || by == testset.ByBatch && some.Share() < really/10 {
				wrong++
				t.Logf("seed %d: %d lost of a whole dump; %.3f lost %s, told as %.3f", seed, none.Lost, really, by, some.Share())
			}
		})
		testset.Rate(t, "nobody is silent in a running server, or with spans lost "+by.String(), len(seeds)-silent, len(seeds), 98)
		testset.Rate(t, "no more spans are told to be lost "+by.String()+" than are", len(seeds)-wrong, len(seeds), 98)
	}
}
