package requests

import (
	"bytes"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// No more is told to be lost than is, and nothing of a dump whose end is missing, as of a
// running server: of what is lost together with all that shows it nobody knows, such as what one rank wrote for a request,
// or what a process wrote last: a tenth shows at least.
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
			really := 1 - float64(lossy.Len())/float64(whole.Len()) // about share: batches differ
			if none.Lost > 0 || some.share() > 1.05*really || by == testset.ByBatch && some.share() < really/10 {
				wrong++
				t.Logf("seed %d: %d lost of a whole dump; %.3f lost %s, told as %.3f", seed, none.Lost, really, by, some.share())
			}
		})
		testset.Rate(t, "no more spans are told to be lost "+by.String()+" than are", len(seeds)-wrong, len(seeds), 98)
	}
}
