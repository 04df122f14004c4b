package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// rates writes docs/RATES.md: in how many simulated runs the reports say what was
// planted, or nothing where nothing was. It runs the tests that are called TestRate..., each
// of which logs lines such as "rate: NAME: right in 98 of 100" (see testset.Rate).
func rates(args []string) error {
	flags := flag.NewFlagSet("rates", flag.ExitOnError)
	out := flags.String("o", "docs/RATES.md", "write the page to `FILE`")
	names := flags.String("run", "", "only tests whose names match `REGEXP`; the page keeps the rows of others")
	timeout := flags.String("timeout", "6h", "stop the tests of a package after this `TIME`")
	flags.Parse(args)
	seeds := os.Getenv("SGTRACE_SEEDS")
	if seeds == "" {
		return errors.New("set SGTRACE_SEEDS to the number of runs of each kind, such as 100")
	}
	packages := flags.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	rates, failed, err := runRates(cmp.Or(*names, "^TestRate"), *timeout, packages)
	if err != nil {
		return err
	}
	text := ratesPage(rates, seeds, packages)
	if *names != "" {
		old, err := os.ReadFile(*out)
		if err != nil {
			return err
		}
		text = mergeRates(string(old), rates)
	}
	if err := os.WriteFile(*out, text, 0o666); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("some tests fail, %s has their rates nevertheless: %w", *out, failed)
	}
	return nil
}

// runRates runs tests and returns their rates; failed says that some do not pass.
func runRates(tests, timeout string, packages []string) (rates []rate, failed, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1", "-timeout", timeout, "-run", tests}, packages...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	if rates, err = collectRates(events, os.Stderr); err != nil {
		return nil, nil, err
	}
	failed = cmd.Wait()
	if exit := (*exec.ExitError)(nil); failed != nil && (!errors.As(failed, &exit) || exit.ExitCode() != 1) {
		return nil, nil, fmt.Errorf("go test: %w", failed) // it did not get to its end
	}
	if len(rates) == 0 {
		return nil, nil, errors.New("no test logged a rate")
	}
	return rates, failed, nil
}

// A rate is in how many runs a test found what it should.
type rate struct {
	pkg, test, what, right, runs string
}

var rateLine = regexp.MustCompile(`rate: (.*): right in (\d+) of (\d+)$`)

// collectRates reads what "go test -json" prints. What a test that fails logs goes to progress.
func collectRates(events io.Reader, progress io.Writer) ([]rate, error) {
	var rates []rate
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(progress, lines.Text())
			continue
		}
		if m := rateLine.FindStringSubmatch(strings.TrimSpace(e.Output)); m != nil {
			test, _, _ := strings.Cut(e.Test, "/")
			_, pkg, _ := strings.Cut(e.Package, "sgtrace/sgtrace/")
			rates = append(rates, rate{pkg, test, m[1], m[2], m[3]})
			fmt.Fprintf(progress, "%s: right in %s of %s\n", m[1], m[2], m[3])
		}
		if e.Action == "fail" {
			fmt.Fprintf(progress, "%s %s FAILS\n", e.Package, e.Test)
		}
	}
	return rates, lines.Err()
}

// ratesPage prints the ratesPage about rates of all tests.
func ratesPage(rates []rate, seeds string, packages []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `# Rates

How often the reports are right about simulated runs, in which everything that is wrong was planted.
%s made this page with %s seeds of each kind of run, of %s. Rows of fewer runs were measured by themselves. Do not edit it.

`, "`make rates`", seeds, "`"+strings.Join(packages, " ")+"`")
	return append([]byte(b.String()), ratesTable(rates)...)
}

const ratesHead = "| what must be found, or must not | right | of | test |\n|---|---:|---:|---|\n"

// ratesTable prints rates below their head, sorted by package and test: tests that run side by
// side log in any order.
func ratesTable(rates []rate) []byte {
	slices.SortStableFunc(rates, func(a, b rate) int {
		return strings.Compare(a.pkg+" "+a.test+" "+a.what, b.pkg+" "+b.test+" "+b.what)
	})
	b := []byte(ratesHead)
	for _, r := range rates {
		b = fmt.Appendf(b, "| %s | %s | %s | `%s` in `%s` |\n", r.what, r.right, r.runs, r.test, r.pkg)
	}
	return b
}

var rateRow = regexp.MustCompile("(?m)^\\| (.*) \\| (\\d+) \\| (\\d+) \\| `(.*)` in `(.*)` \\|$")

// mergeRates replaces in a page the rows of the tests that were measured again.
func mergeRates(old string, again []rate) []byte {
	intro, _, _ := strings.Cut(old, ratesHead)
	all := slices.Clone(again)
	for _, m := range rateRow.FindAllStringSubmatch(old, -1) {
		r := rate{pkg: m[5], test: m[4], what: m[1], right: m[2], runs: m[3]}
		if !slices.ContainsFunc(again, func(a rate) bool { return a.pkg == r.pkg && a.test == r.test }) {
			all = append(all, r)
		}
	}
	return append([]byte(intro), ratesTable(all)...)
}
