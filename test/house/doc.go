// Package house holds the rules of the code itself, as tests.
package house
