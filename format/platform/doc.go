// Package platform reads what the platform below the servers reports about them: metrics scraped by [Prometheus] and, as
// instants, faults in logs of a host ([Kernel]), of nvidia-smi ([NvidiaSMI]), and in events of a cluster ([Kubernetes]).
package platform
