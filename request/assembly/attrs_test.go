package assembly

import (
	"reflect"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// The secret filter keeps attributes that the rules read, as numbers or as numeric text. Dropping
// them would change the reports.
func TestAttributesThatAreReadAreNoSecrets(t *testing.T) {
	syms := trace.NewSymbols()
	keys := reflect.ValueOf(newAttrKeys(syms))
	for i := range keys.NumField() {
		name := syms.Name(trace.Sym(keys.Field(i).Uint()))
		if test := redact.SecretIn(name); test != nil && (test("0.657") || test("17")) {
			t.Errorf("%s may be left out", name)
		}
	}
}
