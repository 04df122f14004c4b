// Package inspect lists what is in files, before anybody analyzes them: producers,
// hosts, ranks, services, spans by name, tables, what the profiler reported, and what
// a file lacks. It sees rows that the formats' indexes fill, and no format.
package inspect
