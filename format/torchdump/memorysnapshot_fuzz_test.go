package torchdump

import (
	"testing"

	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
)

// For any input, the memory attributed to holders adds up to the memory in use.
func FuzzMemorySnapshot(f *testing.F) {
	f.Add(torch.MemorySnapshot(torch.NewAllocator(1, 0, 6, 20), torch.NewAllocator(2, 1, 4, 3)))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, x := readSnapshots(t, data, profile.Filter{})
		for i := 0; x != nil && i < len(x.Devices); i++ {
			d := x.Devices[i]
			r := d.Replay()
			sum := int64(0)
			for _, h := range d.Holdings(&r, r.PeakAt) {
				sum += h.Bytes
			}
			if r.Lost == 0 && sum != r.Peak.Allocated && sum >= 0 && r.Peak.Allocated >= 0 && r.Start.Allocated >= 0 {
				t.Errorf("device %d: %d are held at the peak of %d", d.Number, sum, r.Peak.Allocated)
			}
		}
	})
}
