package gate

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/metric"
)

// parse finds the metric that a text names, and the name and number in it; nil if there is
// none.
func parse(text string) (m *metric.Metric, name, number string) {
	for _, m := range metric.All() {
		rest, ok := strings.CutPrefix(text, m.Name)
		if !ok || rest != "" && rest[0] != '.' {
			continue
		}
		if m.IsMean() {
			if rest == "" {
				return m, "", ""
			}
			continue
		}
		name, number := "", strings.TrimPrefix(rest, ".")
		if at := strings.LastIndexByte(rest, '.'); at > 0 {
			name, number = rest[1:at], rest[at+1:]
		}
		if slices.Contains(m.Numbers, number) && (name == "" || m.Named != metric.NoName) && (name != "" || m.Named != metric.MustName) {
			return m, name, number
		}
	}
	return nil, "", ""
}

// spelled returns the ways in which a metric is written: "ttft.p99", "kernel.NAME.total".
func spelled(m *metric.Metric) []string {
	if m.IsMean() {
		return []string{m.Name}
	}
	var list []string
	for _, number := range m.Numbers {
		if m.Named != metric.MustName {
			list = append(list, m.Name+"."+number)
		}
	}
	for _, number := range m.Numbers {
		if m.Named != metric.NoName {
			list = append(list, m.Name+".NAME."+number)
		}
	}
	return list
}

// Metrics returns the ways in which all metrics are written.
func Metrics() []string {
	var list []string
	for _, m := range metric.All() {
		list = append(list, spelled(m)...)
	}
	return list
}
