package commandline

import (
	"os/exec"
	"strings"
	"testing"
)

// licenses.txt has the license of every module linked into the program, in its version.
func TestEveryModuleHasALicense(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "github.com/sgtrace/sgtrace/cmd/sgtrace")
	out, err := list.Output()
	if err != nil {
		t.Skip("go list: ", err)
	}
	lines := strings.Split(Licenses, "\n")
	there := map[string]bool{}
	for _, line := range lines {
		there[line] = true
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if module := strings.TrimSpace(line); module != "" {
			n++
			if !there[module] {
				t.Errorf("%s has no license in licenses.txt: make docs", module)
			}
		}
	}
	if n < 10 || !there["sgtrace"] {
		t.Errorf("%d packages of modules", n)
	}
}
