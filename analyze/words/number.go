package words

import (
	"math"
	"strconv"
)

// FormatNumber prints a number as programs read it, to six significant digits.
func FormatNumber(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// ShortNumber prints a number as people read it in a table.
func ShortNumber(v float64) string {
	if a := math.Abs(v); a != 0 && a < 0.001 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return ThreeDigits(v)
}

// ThreeDigits prints a number to three significant digits, or all those before
// the point, or three behind it.
func ThreeDigits(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case a == 0:
		return "0"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
