// Package compare tells how an amount differs between two captures: it cuts captures into pieces, tests what these have of the
// amount on both sides, and writes the change in words. It knows of requests when
// they began and ended, and not what is compared.
package compare
