// Package logline reads what lines of logs have in common, whoever wrote them: what collectors put
// around them (Kubernetes, docker, Ray, systemd), stamps of several kinds, and the heads of lines
// of PyTorch's C++ code.
package logline
