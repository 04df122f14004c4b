// Package place names where something happened: host, role, server, rank. It is the one
// place that decides what a rank is called, and which ranks do the same work side by
// side, so that all reports call one thing by one name.
//
// It also knows which servers do the same ([Groups]), and which requests ask for the same
// ([Groups.Population]): the only ones that are worth comparing. An operator chose the models, the versions, and
// the hardware; that a large model is slow is no finding.
package place
