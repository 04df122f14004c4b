// Package place names where something happened: host, role, server, rank. It is the one
// place that decides what a rank is called, and which ranks do the same work side by
// side, so that all reports call one thing by one name.
package place
