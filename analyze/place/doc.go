// Package place names where something happened: host, role, server, rank. It alone decides what a rank is called, and
// which ranks do the same work, so that all reports use the same name for the same thing.
//
// It also knows which servers do the same work ([Groups]), and which requests ask for the same work
// ([Groups.Population]): only these are worth comparing. An operator chose the models, the versions, and the
// hardware, so it is not a finding that a large model is slow.
package place
