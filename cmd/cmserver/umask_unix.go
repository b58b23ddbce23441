//go:build unix

package main

import "syscall"

// ownFilesOnly keeps what is written from other users of the machine, also in a data
// directory that somebody else made with wider permissions.
func ownFilesOnly() { syscall.Umask(0o077) }
