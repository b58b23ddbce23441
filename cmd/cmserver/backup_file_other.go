//go:build !linux

package main

import (
	"errors"
	"os"
)

// Other systems have no files without a name, and no path to an open one.

func unnamedFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, string) error { return errors.ErrUnsupported }

func procPath(f *os.File) string { return f.Name() }
