// Package etcd keeps a store on an etcd cluster. Any number of processes may have it open
// at a time: they hold nothing that the others don't see.
//
// # Commits
//
// A commit is one transaction of etcd: it compares the revisions of the keys that are
// guarded, writes the new versions, and one record of each beside them for the history,
// since etcd's compaction leaves nothing but the newest. A store.Revision is the revision of
// etcd at which the transaction was made, and a constant offset that is kept with the data.
// It grows by more than one where others use the cluster.
//
// Where the answer of a transaction is lost, a second one makes it certain: it either finds
// what the first has written, or leaves a mark that the first, should it still be under
// way, is compared with. Only if that gets no answer either the outcome is open.
//
// # Reads
//
// A watch feeds an index of all keys in memory. A read of the present first asks the
// cluster for its revision, and waits for the index to have come as far; reads at the same
// time share the question. Where the notices by which an idle watch tells how far it has
// come are no proof (etcd before 3.4.31 and 3.5.13, kine), each of them asks etcd for the
// objects themselves. No read of the present is ever answered by the index alone.
package etcd
