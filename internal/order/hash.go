package order

// Mix returns the finalizer of splitmix64: a bijection whose bits all depend on all
// bits of x.
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// MixText returns a hash of a text: FNV-1a, of which the last characters hardly change the high
// bits, mixed.
func MixText(text string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	return Mix(h)
}
