// Package rocm writes what profilers of AMD's ROCm would have recorded of a server: the same
// kernels, copies, calls and ranges as a rocpd database, as an RPD trace, and as JSON of rocprofv3.
// Tables have the columns of schema 3.0.0 of rocpd and of version 2 of RPD.
package rocm
