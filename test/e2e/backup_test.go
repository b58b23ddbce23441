package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cmserver prepares another command of the server program. What it writes to
// standard error is in the buffer when it has ended.
func cmserver(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "cmserver"), args...)
	cmd.Env = bareEnvironment(t)
	var said bytes.Buffer
	cmd.Stderr = &said
	return cmd, &said
}

// mustCmserver fails the test if the command does.
func mustCmserver(t *testing.T, args ...string) {
	t.Helper()
	if cmd, said := cmserver(t, args...); cmd.Run() != nil {
		t.Fatalf("cmserver %v ended with %d:\n%s", args, cmd.ProcessState.ExitCode(), said)
	}
}

// fill writes objects that are more than what pipes and sockets hold.
func fill(ctx context.Context, t *testing.T, s *server, n int) {
	t.Helper()
	for i := range n {
		if err := call(ctx, "POST", s.url+collection, configMap(fmt.Sprint("big", i), "", strings.Repeat("x", 900_000)), 201, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

// Writers write while backups are taken and their clients are killed, at any
// moment: no write fails, no half file is left, and each file that is there is a
// whole backup.
func TestBackupClientsAreKilledUnderLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir, folder := filepath.Join(t.TempDir(), "data"), t.TempDir()
	s := startServer(t, dir)
	fill(ctx, t, s, 10)
	begun := time.Now()
	mustCmserver(t, "backup", "--data-dir", dir, filepath.Join(folder, "backup"))
	undisturbed := time.Since(begun)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		cm := configMap("busy", "", "0")
		err := call(ctx, "POST", s.url+collection, cm, 201, cm)
		for n := 0; err == nil; n++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			cm.Data["content"] = strconv.Itoa(n)
			err = call(ctx, "PUT", s.url+collection+"/busy", cm, 200, cm)
		}
		stopped <- err
	}()
	whole := 0
	for i := range 10 {
		file := filepath.Join(folder, fmt.Sprint("backup", i))
		cmd, _ := cmserver(t, "backup", "--data-dir", dir, file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(rand.N(2*undisturbed), func() { cmd.Process.Signal(syscall.SIGKILL) })
		if cmd.Wait() == nil {
			whole++
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("a write failed: %v", err)
	}
	names := entries(t, folder)
	if len(names) < whole {
		t.Errorf("%d backups were made, there are %v", whole, names)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "backup") {
			t.Errorf("left behind: %s", name)
		}
		mustCmserver(t, "check", filepath.Join(folder, name))
	}
	t.Logf("%d of 10 backups were done before the kill", whole)
	// The server has nothing left of them, and gives the next one.
	mustCmserver(t, "backup", "--data-dir", dir, filepath.Join(folder, "last"))
	mustCmserver(t, "restore", filepath.Join(folder, "last"), "--data-dir", filepath.Join(folder, "restored"))
}

// The server is killed in the midst of a backup: its client says so, and what it
// has is no backup. The next server gives one.
func TestTheServerIsKilledDuringABackup(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "data")
	s := startServer(t, dir)
	fill(ctx, t, s, 10)
	cmd, said := cmserver(t, "backup", "--data-dir", dir, "-")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, 1000)
	if _, err := io.ReadFull(out, begin); err != nil {
		t.Fatal(err)
	}
	s.kill()
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 || !strings.Contains(said.String(), "no backup was made") || !strings.Contains(said.String(), "the server has ended") {
		t.Errorf("the client ended with %v:\n%s", err, said)
	}
	check, _ := cmserver(t, "check", "-")
	check.Stdin = bytes.NewReader(append(begin, rest...))
	if check.Run(); check.ProcessState.ExitCode() != 1 {
		t.Errorf("check of what there is of it ended with %d", check.ProcessState.ExitCode())
	}
	startServer(t, dir)
	mustCmserver(t, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "file"))
}

// A restore is killed in the midst: no server starts on what it left, and the next
// restore makes a whole store of it.
func TestARestoreIsKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir, again, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "again"), filepath.Join(t.TempDir(), "file")
	s := startServer(t, dir)
	fill(ctx, t, s, 10)
	last := listVersion(ctx, t, s.url)
	mustCmserver(t, "backup", "--data-dir", dir, file)
	s.kill()
	backup, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{2, 100} { // half of it has come, or nearly all
		cmd, _ := cmserver(t, "restore", "-", "--data-dir", again)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(backup[:len(backup)-len(backup)/part]); err != nil {
			t.Fatal(err)
		}
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(again, "RESTORING")); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		in.Close()
		serve, said := cmserver(t, "--listen", "127.0.0.1:0", "--data-dir", again)
		var exit *exec.ExitError
		if err := serve.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(said.String(), "cmserver restore again") {
			t.Fatalf("a server on half a restore: %v\n%s", err, said)
		}
	}
	mustCmserver(t, "restore", file, "--data-dir", again)
	mustCmserver(t, "check", "--data-dir", again)
	s = startServer(t, again)
	if now := listVersion(ctx, t, s.url); now < last+1<<20 {
		t.Errorf("restored at version %d, it was at %d", now, last)
	}
	for i := range 10 {
		if err := call(ctx, "GET", s.url+collection+"/big"+strconv.Itoa(i), nil, 200, nil); err != nil {
			t.Error(err)
		}
	}
}

// Clients that follow a watch over a restore are told to list anew, and see what
// is there then. Nobody waits in silence for a version of the lost life.
func TestClientsOverARestore(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir, again, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "again"), filepath.Join(t.TempDir(), "file")
	s := startServer(t, dir)
	cm := configMap("app", "", "before")
	if err := call(ctx, "POST", s.url+collection, cm, 201, cm); err != nil {
		t.Fatal(err)
	}
	kept := cm.ResourceVersion
	mustCmserver(t, "backup", "--data-dir", dir, file)
	cm.Data["content"] = "lost"
	if err := call(ctx, "PUT", s.url+collection+"/app", cm, 200, cm); err != nil {
		t.Fatal(err)
	}
	lost := cm.ResourceVersion
	s.kill()
	mustCmserver(t, "restore", file, "--data-dir", again)
	s = startServer(t, again)

	for _, from := range []string{kept, lost} {
		listen(ctx, t, s.url+collection+"?watch=1&resourceVersion="+from).hears("ERROR  ") // 410, and no version
	}
	var r *refused
	if err := call(ctx, "PUT", s.url+collection+"/app", cm, 200, nil); !errors.As(err, &r) || r.code != 409 {
		t.Errorf("a write on a lost version: %v", err)
	}
	cm.ResourceVersion = kept // read before the backup, and worth what it was
	if err := call(ctx, "PUT", s.url+collection+"/app", cm, 200, cm); err != nil {
		t.Error(err)
	}
	if cm.ResourceVersion == lost || cm.ResourceVersion == kept {
		t.Errorf("version %s was given twice", cm.ResourceVersion)
	}
}
