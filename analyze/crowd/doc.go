// Package crowd makes tables of very many ranks short enough to read: ranks that a finding names
// keep their rows, and all others are summed up, by host or whatever larger group hosts are in.
// Programs get tables as they are.
package crowd
