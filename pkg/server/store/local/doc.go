// Package local keeps a store in a directory of its own, on Pebble. It is what
// cmserver uses by default: one process, one disk, every commit synced before it
// is acknowledged.
//
//	s, err := local.Open(local.Options{Dir: "/var/lib/cmserver"})
//	if err != nil {
//		return err // names the directory and says what to do
//	}
//	defer s.Close()
//
// How a write travels: Commit encodes the records in its caller's goroutine and
// queues the transaction. One committer takes what waits as a batch, checks each
// transaction against the committed state plus the batch so far, gives each its
// revision, writes the batch to Pebble with one sync, and only then publishes the
// new state, answers the writers and feeds the watchers. Readers of the present
// use the published state, an immutable B-tree swapped as a whole; readers of
// the past use Pebble, and never look beyond the published revision, because
// Pebble shows a batch to its readers before it is durable.
//
// What lists show that leave out contents is in the published state, however long
// the values are: each record's brief, and its head unless that is long itself.
//
// # When the disk fails
//
// Pebble v2 treats an error on its write-ahead log or manifest as the end of the
// process: it calls Logger.Fatalf and, if that returns, reports the failed batch
// as a success; while it changes log files it panics with its mutexes in a state
// that makes the Go runtime abort. None of that is of use to readers who could
// go on, and the second would be a lost update. So the store gives Pebble a file
// system that stands still instead: the first error on a file that Pebble can't
// do without marks the store as failed, and the operation never returns. Commit
// then returns store.ErrFailed, reads go on, and Close leaves Pebble as it is,
// with the directory's lock, until the process ends. Table files, whose writing
// Pebble repeats by itself, are not treated so.
package local
