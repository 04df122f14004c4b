// Package nccl reads what NCCL writes of its collectives: its [Log], and the records of its [Inspector].
package nccl
