package selection

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// ZoneFlag chooses the zone of times that are printed for people, and of those that are
// given without a zone.
func ZoneFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "tz", Category: category, DefaultText: "UTC",
		Usage: "times are in `ZONE`, such as Europe/Berlin, +02:00, or local, in text, pages, and --from and --to; CSV and JSON stay in UTC"}
}

// Zone reads [ZoneFlag]. Its errors are of type [commandline.UsageError].
func Zone(ctx *cli.Context) (*time.Location, error) {
	text := ctx.String("tz")
	switch text {
	case "", "Z":
		return time.UTC, nil
	case "local":
		return time.Local, nil
	}
	for _, layout := range [...]string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(layout, text); err == nil {
			_, seconds := t.Zone()
			return time.FixedZone(text, seconds), nil
		}
	}
	zone, err := time.LoadLocation(text)
	if err != nil {
		return nil, commandline.Usage("--tz %q: want a name such as Europe/Berlin, an offset such as +02:00, or local", text)
	}
	return zone, nil
}
