// Package docs embeds the pages of this folder that the program prints, such as the guide to metrics.
package docs

import _ "embed"

// Metrics is METRICS.md: what every number in a report means.
//
//go:embed METRICS.md
var Metrics string

// Columns is COLUMNS.md: all columns of all tables, as the tables say themselves.
//
//go:embed COLUMNS.md
var Columns string

// Formats is FORMATS.md: what is read of every producer, and what every message means.
//
//go:embed FORMATS.md
var Formats string

// Gate is GATE.md: how scripts fail on findings and on changes.
//
//go:embed GATE.md
var Gate string

// Agents is AGENTS.md: how scripts and agents use the JSON.
//
//go:embed AGENTS.md
var Agents string

// Schema is schema.json: the JSON Schema of what --format json prints.
//
//go:embed schema.json
var Schema string
