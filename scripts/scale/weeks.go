//go:build linux

package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/golden"
)

// weeks simulates days of some servers, extracts each day into one dataset, and prints what that
// costs, and what the report on all of them does. The report must name what was planted.
func (b *bench) weeks(size string) error {
	var days, servers int
	if _, err := fmt.Sscanf(size, "%dx%d", &days, &servers); err != nil || days < 1 || servers < 1 {
		return fmt.Errorf("-weeks %q: want days and servers, such as 30x20", size)
	}
	c := golden.DefaultWeeks(days, servers)
	var extract, again cost
	input := int64(0)
	for day := range days {
		if err := c.WriteDay(filepath.Join(b.dir, tracesName), day); err != nil {
			return err
		}
		dir := golden.DayDir(tracesName, day)
		if err := os.Remove(filepath.Join(b.dir, dir, "truth.json")); err != nil {
			return err
		}
		n, err := sizeOf(filepath.Join(b.dir, dir))
		if err != nil {
			return err
		}
		input += n
		if err := b.measure(&extract, "extract", "-o", datasetName, dir); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(b.dir, dir)); err != nil {
			return err
		}
	}
	stored, err := sizeOf(filepath.Join(b.dir, datasetName))
	if err != nil {
		return err
	}
	if err := b.measure(&again, "report", "--fleet", datasetName); err != nil {
		return err
	}
	fmt.Println("| days x servers | input MB | dataset MB | extract CPU s a day | MB | report --fleet CPU s | MB |")
	fmt.Println("|---|---|---|---|---|---|---|")
	fmt.Printf("| %s | %.0f | %.0f | %.1f | %d | %.1f | %d |\n", size, float64(input)/1e6, float64(stored)/1e6,
		extract.cpu.Seconds()/float64(days), extract.most/1e6, again.cpu.Seconds(), again.most/1e6)
	return b.named(&c)
}

// named prints the findings, and checks that they name what was planted.
func (b *bench) named(c *golden.Weeks) error {
	out, err := b.run("report", "--fleet", "--format", "csv", "--table", "findings", datasetName)
	if err != nil {
		return err
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil {
		return err
	}
	text := ""
	for _, row := range rows[1:] {
		text += row[slices.Index(rows[0], "text")] + "\n"
	}
	fmt.Print(text)
	for _, want := range []string{
		fmt.Sprintf("GPU %d of %s (", c.SlowGPU, c.SlowHost()),
		fmt.Sprintf("since %s", c.Start.AddDate(0, 0, c.ChangeDay).Format("2006-01-02")),
		fmt.Sprintf("GPU driver went from %s to %s", golden.Drivers[0], golden.Drivers[1]),
	} {
		if !strings.Contains(text, want) {
			return fmt.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	return nil
}
