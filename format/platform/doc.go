// Package platform reads what is below the servers and says of trouble there: logs of a host
// ([Kernel]), and events of a cluster ([Kubernetes]), as instants.
package platform
