package overview

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
)

func TestAbsenceWarnings(t *testing.T) {
	for want, absence := range map[string]profile.Absence{
		"traces of 7 of 8 ranks; TP2 is missing: whether the others wait for it is not known":                                                    {Seen: 7, Size: 8, Missing: []string{"TP2"}},
		"traces of 1 of at least 7 ranks; rank 0, rank 1, rank 2, rank 3 and 2 more are missing: who waits for whom in collectives is not known": {Seen: 1, Size: 7, AtLeast: true, Missing: []string{"rank 0", "rank 1", "rank 2", "rank 3"}},
		"traces of 6 of 8 ranks; TP2, TP3 are missing: whether the others wait for one of them is not known":                                     {Seen: 6, Size: 8, Missing: []string{"TP2", "TP3"}},
	} {
		o := New(Input{Profiles: &profile.Set{Absences: []profile.Absence{absence}}})
		if len(o.Warnings) != 1 || o.Warnings[0].Text != want {
			t.Errorf("%+v, want %q", o.Warnings, want)
		}
	}
}
