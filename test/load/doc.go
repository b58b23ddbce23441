// Package load holds the tests of what the server bears: many objects, many
// watches, long work. Each runs small with all other tests. In full they are run
// by hand, one at a time, and print the figures of docs/reliability.md:
//
//	LOAD=full go test ./test/load -run TestManyObjects -v -timeout 15m
package load
