// Package goldentest is what the tests of golden's packages share: deployments to
// look at, and readers of what was written that use encoding/json alone.
//
// It imports simulator, spans and torch, so that their tests which need it are
// external ones.
package goldentest
