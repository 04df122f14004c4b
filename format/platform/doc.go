// Package platform reads what the platform below servers says about them: metrics that [Prometheus] scraped
// and, as instants, trouble in logs of a host ([Kernel]), of nvidia-smi ([NvidiaSMI]), and in events of a
// cluster ([Kubernetes]).
package platform
