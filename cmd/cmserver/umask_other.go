//go:build !unix

package main

// ownFilesOnly is left to the system's permissions.
func ownFilesOnly() {}
