package ground

import "math/rand/v2"

// HexDigits returns n random lower case hex digits.
func HexDigits(rng *rand.Rand, n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[rng.IntN(len(digits))]
	}
	return string(b)
}
