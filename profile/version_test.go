package profile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Versions are found by attribute names; CUDA encodes its version in one number.
func TestVersions(t *testing.T) {
	m := &Meta{Attributes: []trace.Attribute{
		{Key: "schemaVersion", Value: "1"}, {Key: "cuda_runtime_version", Value: "12090"}, {Key: "cuda_driver_version", Value: "new"},
		{Key: "vllm_version", Value: "0.11.0"}, {Key: "_version", Value: "1"}, {Key: "note_version", Value: strings.Repeat("x", 41)},
		{Key: DriverVersion, Value: "550.54.15"}, {Key: "empty_version"},
	}}
	want := "[{CUDA runtime 12.9} {CUDA driver new} {vllm 0.11.0} {GPU driver 550.54.15}]"
	if got := fmt.Sprint(m.Versions()); got != want {
		t.Errorf("versions are %s, want %s", got, want)
	}
}
