// Package hash mixes numbers into others that look random.
package hash

// Mix is the finalizer of splitmix64: a bijection whose bits all depend on all
// bits of x.
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
