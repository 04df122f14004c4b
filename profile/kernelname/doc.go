// Package kernelname tells by the names of kernels and of operators what they do: whether they compute,
// communicate or move memory ([Class]), and which kind of work that is ([Kind]). Names are taken apart
// as compilers wrote them ([Parse]). The rules are tables: rules.go, classes.go, kind.go.
package kernelname
