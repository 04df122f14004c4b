// Package tabletest renders tables for tests.
package tabletest
