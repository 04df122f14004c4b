package page

import (
	"math"
	"regexp"
	"strconv"
	"testing"
)

// luminance returns the relative luminance of a color such as #1d2430, as WCAG defines it.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	if len(color) == 4 {
		color = "#" + color[1:2] + color[1:2] + color[2:3] + color[2:3] + color[3:4] + color[3:4]
	}
	n, err := strconv.ParseUint(color[1:], 16, 32)
	if err != nil || len(color) != 7 {
		t.Fatalf("color %q", color)
	}
	linear := func(byte uint64) float64 {
		v := float64(byte&255) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
}

// Text has a contrast of at least 4.5 to 1 with its background, in both themes.
func TestContrast(t *testing.T) {
	variable := regexp.MustCompile(`--([a-z]+-?[a-z]*\d*): (#[0-9a-f]{3,6});`)
	for theme, css := range map[string]string{"light": lightCSS, "dark": darkCSS} {
		colors := map[string]string{}
		for _, m := range variable.FindAllStringSubmatch(css, -1) {
			colors[m[1]] = m[2]
		}
		pairs := [][2]string{
			{"ink", "page"}, {"ink", "card"}, {"ink", "code"}, {"ink", "faint"}, {"dim", "page"}, {"dim", "card"}, {"dim", "code"}, {"link", "page"}, {"link", "card"},
			{"good", "card"}, {"bad", "card"}, {"warn", "card"}, {"note", "card"}, {"page", "mark"},
		}
		for _, side := range []string{"h", "l"} {
			for depth := 1; depth <= 5; depth++ {
				class := side + strconv.Itoa(depth)
				pairs = append(pairs, [2]string{"on-" + class, class})
			}
		}
		for _, p := range append(pairs, [2]string{"ink", "h0"}) {
			if colors[p[0]] == "" || colors[p[1]] == "" {
				t.Errorf("%s: no color %s or %s", theme, p[0], p[1])
				continue
			}
			a, b := luminance(t, colors[p[0]]), luminance(t, colors[p[1]])
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", theme, p[0], p[1], ratio)
			}
		}
	}
}
