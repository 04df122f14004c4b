// Package platform reads what is told of servers from outside, by what they run on: metrics that
// [Prometheus] scraped, and of trouble below them, logs of a host ([Kernel]), of nvidia-smi ([NvidiaSMI]),
// and events of a cluster ([Kubernetes]), as instants.
package platform
