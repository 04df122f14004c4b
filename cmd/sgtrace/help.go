package main

// appHelp is the page of "sgtrace help". It fits a screen.
const appHelp = `sgtrace - {{.Usage}}

  Reads what is left after an incident (OTLP JSON dumps of SGLang's request
  tracing, PyTorch profiler traces), offline, puts it on one clock, and writes
  Perfetto files and percentile reports.

Usage:
  sgtrace COMMAND [FLAGS] INPUT...

Commands:
{{range .VisibleCommands}}  {{printf "%-12s" .Name}}{{.Usage}}
{{end}}
Inputs are files, globs, directories or - for standard input; .gz, .zst and
framed dumps are recognised by content. 'sgtrace help COMMAND' has examples.

Exit status: 0 complete, 1 no usable output, 2 wrong usage,
             3 output written, but input was dropped or damaged.
`
