package profile

// NodeAnnotations are the names that a program gave the nodes of its CUDA graphs while it captured them.
type NodeAnnotations struct {
	File string
	Rank int32 // in its world; -1 is unknown
	// Names are by number of the node in the graph that is run, as [Kernel.Node] has it.
	Names map[int64]string
}
