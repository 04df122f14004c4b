package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// CostText says in words what f costs: "accounts for 42 % of total request time".
func (f *Finding) CostText() string {
	counts := f.CostBasis == Requests || f.CostBasis == Calls || f.CostBasis == Ranks
	part, basis := fmt.Sprintf("%.0f %%", 100*f.Cost), cmp.Or(f.BasisText, string(f.CostBasis))
	switch {
	case f.Cost == 0 && counts:
		return fmt.Sprintf("affects no %s", basis)
	case f.Cost == 0:
		return "no known cost" // many things that are good to know are not measured in time
	case f.Cost < 0.005:
		part = "less than 1 %"
	}
	if counts {
		return fmt.Sprintf("affects %s of %s", part, basis)
	}
	return fmt.Sprintf("accounts for %s of total %s", part, basis)
}

// Remark says behind the sentence how sure f is, and what it costs.
func (f *Finding) Remark() string { return fmt.Sprintf("%s; %s", f.Confidence, f.CostText()) }

// CommandLine returns the arguments of a command that shows more, as Show has it.
func CommandLine(show []string) []string {
	if strings.HasPrefix(show[0], "-") {
		return slices.Concat([]string{"sgtrace", "report"}, show)
	}
	return slices.Concat([]string{"sgtrace"}, show)
}

// commands returns the command lines that show more of f, as arguments. The arguments again
// select and read the same inputs once more: "--from", "+10s", "dumps/".
func (f *Finding) commands(again []string) [][]string {
	return order.Each(f.Show, func(show []string) []string { return slices.Concat(CommandLine(show), again) })
}

// Command returns the first of the commands, ready to paste into a shell.
func (f *Finding) Command(again []string) string { return words.QuoteShell(f.commands(again)[0]) }
