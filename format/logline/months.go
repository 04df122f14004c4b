package logline

import (
	"strings"
	"time"
)

// months are the abbreviations of months by journalctl and syslog, in the reader's locale: English, German,
// French, Spanish, Italian, Portuguese, Polish, Dutch.
var months = func() map[string]time.Month {
	of := map[string]time.Month{}
	for i, names := range [...]string{"jan janv ene gen sty", "feb févr fév fev lut", "mar mars mär mrz mrt", "apr avr avril abr kwi", "may mai mag mei maj", "jun juin giu cze", "jul juil lug lip", "aug août aoû ago sie",
		"sep sept set wrz", "oct okt ott out paź", "nov lis", "dec déc dez dic gru"} {
		for _, name := range strings.Fields(names) {
			of[name] = time.Month(i + 1)
		}
	}
	return of
}()

// monthOf returns the month of an abbreviation in any of these languages; 0 if there is none.
func monthOf(name string) time.Month {
	return months[strings.TrimSuffix(strings.ToLower(name), ".")]
}
