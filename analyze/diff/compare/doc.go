// Package compare tests how an amount differs between two captures: it cuts captures into
// pieces, tests the amounts in the pieces of both sides, and puts the change into words. It
// doesn't know what the amounts are; of requests, it only knows when they began and ended.
package compare
