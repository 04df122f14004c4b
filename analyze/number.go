package analyze

import (
	"math"
	"strconv"
)

// realCell is unknown when v is NaN or infinite.
func realCell(v float64) Cell { return Cell{Share: v, Unknown: math.IsNaN(v) || math.IsInf(v, 0)} }

// formatNumber prints a number as programs read it, to six significant digits.
func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// shortNumber prints a number as people read it in a table.
func shortNumber(v float64) string {
	if a := math.Abs(v); a != 0 && a < 0.001 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return threeDigits(v)
}

// threeDigits prints a number to three significant digits, or all those before
// the point, or three behind it.
func threeDigits(v float64) string {
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
