package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/convert/output"
	"github.com/sgtrace/sgtrace/trace"
)

// verifyFlag is on every command that writes a timeline.
func (c *command) verifyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verify", Destination: &c.verify, DisableDefaultText: true,
		Usage: "read the output back and compare it with what should have been written"}
}

// keepSecretsFlag is on every command that writes attributes.
func keepSecretsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "keep-secrets", DisableDefaultText: true,
		Usage: "keep attributes that may hold prompts, credentials, or environments (default: leave them out and count them)"}
}

// writeVerified is like Write of out, and says that the file is equal to t.
func (c *command) writeVerified(out *output.Output, t *trace.Trace) (int64, error) {
	size, equal, err := out.WriteVerified(t)
	if err == nil {
		fmt.Fprintf(c.screen.Notices, "%s verified: %s match the model\n", printable(out.Name()), equal)
	}
	return size, err
}
