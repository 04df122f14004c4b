// Package kernelname classifies kernels and operators by their names: whether they compute, communicate, or
// move memory ([Class]), and which kind of work that is ([Kind]). It parses names as compilers wrote them
// ([Parse]). The rules are tables: rules.go, classes.go, kind.go.
package kernelname
