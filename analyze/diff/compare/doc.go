// Package compare says how an amount differs between two captures: it cuts captures into pieces, tests the amounts in the
// pieces of both sides, and puts the change into words. All that it knows about requests is when they began and ended; it does
// not know what is compared.
package compare
