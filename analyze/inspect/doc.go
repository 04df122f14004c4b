// Package inspect lists what is in files, before they are analyzed: producers, hosts,
// ranks, services, spans by name, tables, what the profiler reported, and what a file
// lacks. It gets rows that the indexes of formats fill, and does not know the formats.
package inspect
