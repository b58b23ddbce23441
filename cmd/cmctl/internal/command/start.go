package command

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
)

// Unstarted is why a program could not be started, in words for a person: err is
// what package exec, or the system, said of it.
func Unstarted(err error) string {
	var ran *fs.PathError
	var looked *exec.Error
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "there is no such program in the PATH"
	case errors.As(err, &ran) && errors.Is(err, fs.ErrNotExist) && exists(ran.Path):
		return "the interpreter that it names in its first line is not there"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.As(err, &ran):
		return ran.Err.Error()
	case errors.As(err, &looked):
		return looked.Err.Error()
	}
	return err.Error()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
