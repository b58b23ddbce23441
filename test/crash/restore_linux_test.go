package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A restore onto a disk that is too small says how much is missing, and leaves the disk
// as it found it. With so much more the same call makes a store of the backup.
func TestRestoreOntoASmallDisk(t *testing.T) {
	const mib = 16
	disk := small(t, mib)
	if disk == "" {
		return
	}
	dir := t.TempDir()
	p := serve(t, dir)
	n, code := fill(t.Context(), newAPI(p.url), "a", 60)
	if code != 201 {
		t.Fatalf("after %d objects the answer is %d", n, code)
	}
	p.kill()
	backup := filepath.Join(t.TempDir(), "backup")
	if code, said := command(t, "backup", backup, "--data-dir", dir); code != 0 {
		t.Fatalf("the backup ended with %d: %s", code, said)
	}
	there := filepath.Join(disk, "there")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	var missing int64
	for _, into := range []string{there, filepath.Join(disk, "not", "there")} {
		code, said := command(t, "restore", backup, "--data-dir", into)
		if code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, into) {
			t.Errorf("it ended with %d: %s", code, said)
		}
		_, after, _ := strings.Cut(said, "the disk is full: about ")
		if _, err := fmt.Sscanf(after, "%d more bytes are needed", &missing); err != nil {
			t.Fatalf("it says: %s", said)
		}
		if found := list(t, disk) + list(t, there); found != "there" {
			t.Errorf("there is %s", found)
		}
	}
	t.Logf("%d MB on %d MiB: %d bytes were missing", n/2, mib, missing)
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", mib<<20+missing)); err != nil {
		t.Fatal(err)
	}
	if code, said := command(t, "restore", backup, "--data-dir", there); code != 0 {
		t.Fatalf("with so much more it ended with %d: %s", code, said)
	}
	p = serve(t, there)
	a := newAPI(p.url)
	holdsAll(t, a, "a", n)
	expect(t, a, 201, "POST", collection, large("new", 100))
	p.kill()
}

// command runs a command of cmserver to its end.
func command(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "cmserver"), args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// list is what is in a folder.
func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
