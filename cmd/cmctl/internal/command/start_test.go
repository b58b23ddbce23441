package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/command"
)

func TestWhyAProgramCantBeStarted(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"script": 0o700, "text": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/nowhere/interpreter\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for program, want := range map[string]string{
		"no-such-program":            "there is no such program in the PATH",
		filepath.Join(dir, "none"):   "there is no such file",
		filepath.Join(dir, "text"):   "permission denied",
		filepath.Join(dir, "script"): "the interpreter that it names in its first line is not there",
	} {
		if got := command.Unstarted(exec.Command(program).Start()); got != want {
			t.Errorf("%s: %s, want %s", program, got, want)
		}
	}
}
