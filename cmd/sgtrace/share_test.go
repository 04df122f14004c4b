package main

import (
	"slices"
	"testing"
)

// factors are ratio columns that relate one quantity to another, and may exceed 1.
var factors = []string{"of_median", "p50_of_median", "of_mean", "expert_of_mean", "kernels_of_mean"}

// sharesAreParts checks that every share in a document is between 0 and 1: in tables, and in the
// costs and metrics of findings.
func sharesAreParts(t *testing.T, args []string, document any) {
	t.Helper()
	check := func(what string, share any) {
		if s, known := share.(float64); known && !(s >= 0 && s <= 1) {
			t.Errorf("%v: %s is %v: no part of a whole (a table.FactorColumn may exceed 1: add its key to factors in share_test.go)", args, what, s)
		}
	}
	object, _ := document.(map[string]any)
	tables, _ := object["tables"].([]any)
	for _, x := range tables {
		table := x.(map[string]any)
		for _, x := range table["columns"].([]any) {
			column := x.(map[string]any)
			name := column["name"].(string)
			if column["unit"] != "ratio" || slices.Contains(factors, name) {
				continue
			}
			for _, row := range table["rows"].([]any) {
				check(table["name"].(string)+"."+name, row.(map[string]any)[name])
			}
		}
	}
	findings, _ := object["findings"].([]any)
	for _, x := range findings {
		found := x.(map[string]any)
		check("the cost of "+found["id"].(string), found["cost"])
		if metric, ok := found["metric"].(map[string]any); ok && metric["unit"] == "ratio" {
			check("the metric of "+found["id"].(string), metric["before"])
			check("the metric of "+found["id"].(string), metric["after"])
		}
	}
}
