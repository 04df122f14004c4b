package memory

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// flagsAt returns the kernel's flags for the mapping that contains an address.
func flagsAt(t *testing.T, at uintptr) []string {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			inside = from <= at && at < to
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && inside {
			return strings.Fields(flags)
		}
	}
	t.Skip("the kernel notes no flags of mappings")
	return nil
}

// The first, middle, and last page of a table are marked as huge pages; beyond the budget, those of
// another table are not. Neither changes the contents.
func TestHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil {
		t.Skip("this kernel has no huge pages")
	}
	defer SetBudget(Budget())
	isHuge := func(table []byte, i int) bool {
		return slices.Contains(flagsAt(t, uintptr(unsafe.Pointer(&table[i]))), "hg")
	}
	const size = 5*hugePage + 1
	SetBudget(0)
	table := Make[byte](size)
	for _, i := range []int{0, size / 2, size - 1} {
		if table[i] != 0 || !isHuge(table, i) {
			t.Errorf("byte %d of a table is %d, on a huge page: %v", i, table[i], isHuge(table, i))
		}
	}
	SetBudget(1) // never enough for huge pages
	other := Huge(make([]byte, 256<<20))
	if i := len(other) / 2; other[i] != 0 || isHuge(other, i) {
		t.Errorf("beyond the budget, byte %d of a table is %d, on a huge page: %v", i, other[i], isHuge(other, i))
	}
}
