// Package peers tells which servers do the same, and which requests ask for the same: the
// only ones that are worth comparing. An operator chose the models, the versions, and the
// hardware; that a large model is slow is no finding.
package peers
