package nsysexport

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/trace"
)

// exported returns the path of the export of an input. For a report (.nsys-rep), which only nsys can read, it
// makes an export, which remove removes; for an export, remove is nil.
func exported(in *format.Input, diags *trace.Diags) (path string, remove func() error, err error) {
	isReport, err := isReport(in)
	if err != nil || !isReport {
		return in.Path, nil, err
	}
	command := "nsys export --type sqlite " + storage.ShellQuote(in.Name)
	if in.Found {
		err := fmt.Errorf("is an Nsight Systems report, which only nsys can read; sgtrace starts programs only for files that you name: run %s", command)
		if isExportBeside(in.Path) {
			err = fmt.Errorf("%w: %w", format.ErrNotNeeded, err)
		}
		return "", nil, err
	}
	nsys, err := exec.LookPath("nsys")
	if err != nil {
		return "", nil, fmt.Errorf("is an Nsight Systems report, which only nsys can read, and nsys is not in PATH: "+
			"run %s where it is installed, and give the result", command)
	}
	if path, remove, err = runExport(nsys, in.Path); err != nil {
		return "", nil, fmt.Errorf("is an Nsight Systems report, and %s failed: %w", command, err)
	}
	diags.Add(trace.NsysExported.Of(in.Name, command))
	return path, remove, nil
}

// isReport reports whether an input is a report that was not exported.
func isReport(in *format.Input) (bool, error) {
	if in.Files != nil {
		return false, nil
	}
	f, err := os.Open(in.Path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return false, err
	}
	return storage.IsReport(head[:n]), nil
}

// isExportBeside reports whether the export of a report is in the same directory, under one of the names that
// nsys chooses.
func isExportBeside(report string) bool {
	stem := strings.TrimSuffix(report, filepath.Ext(report))
	return slices.ContainsFunc([]string{".sqlite", ".sqlite.gz", ".sqlite.zst", "_pqtdir"}, func(end string) bool {
		_, err := os.Stat(stem + end)
		return err == nil
	})
}

// runExport runs nsys to export a report to a temporary file. The output of nsys only appears in the error.
func runExport(nsys, report string) (path string, remove func() error, err error) {
	report, err = filepath.Abs(report) // an absolute path cannot be taken for a flag
	if err != nil {
		return "", nil, err
	}
	dir, remove, err := memory.TempDir()
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "export.sqlite")
	said, err := exec.Command(nsys, "export", "--type", "sqlite", "--output", path, report).CombinedOutput()
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("%w: %s", err, lastLine(said))
	}
	return path, remove, nil
}

// lastLine returns the last nonempty line of a text.
func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return strings.ToValidUTF8(string(bytes.TrimSpace(lines[len(lines)-1])), "?")
}
