package requests

import (
	"bytes"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// The reported loss exceeds the true loss by at most 5 %, and a dump whose end is missing, as from a running
// server, has none. Some losses leave no sign, such as all spans of a rank for a request, or the last spans of a
// process, but if whole batches are lost, at least a tenth of the loss shows.
func TestRateOfLoss(t *testing.T) {
	seeds := testset.Seeds(t)
	for _, by := range testset.Losses {
		var mu sync.Mutex
		wrong := 0
		testset.EachSeed(seeds, func(seed uint64) {
			const share = 0.05
			dump, _ := testinput.Simulate(t, testset.Deployment(seed, testset.Calm(seed)))
			dump = dump[:bytes.LastIndexByte(dump[:len(dump)/3*2], '\n')+1]
			whole := testset.BuildSet(t, "running", bytes.NewReader(dump))
			lossy := testset.BuildSet(t, "lost", bytes.NewReader(testset.Lose(dump, by, share, seed)))
			none, some := FindLoss(whole), FindLoss(lossy)
			mu.Lock()
			defer mu.Unlock()
			really := 1 - float64(lossy.Len())/float64(whole.Len()) // share is approximate: batches differ
			if none.Lost > 0 || some.share() > 1.05*really || by == testset.ByBatch && some.share() < really/10 {
				wrong++
				t.Logf("seed %d: %d lost of a whole dump; %.3f lost %s, told as %.3f", seed, none.Lost, really, by, some.share())
			}
		})
		testset.Rate(t, "no more spans are told to be lost "+by.String()+" than are", len(seeds)-wrong, len(seeds), 98)
	}
}
