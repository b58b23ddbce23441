package crash

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// small is a file system of its own with so many MiB. It is empty where this process
// may not mount one, which is a right and nothing that could be installed; the store's
// own tests of full disks need none.
func small(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib))
	if errors.Is(err, syscall.EPERM) {
		t.Logf("NOT TRIED: a small file system can't be mounted here: %v", err)
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill creates objects until one is refused, and returns how many there are and the
// refusal's code: 0 if no answer came.
func fill(ctx context.Context, a *api, prefix string, most int) (n, code int) {
	for ; n < most; n++ {
		code, _ = a.call(ctx, "POST", collection, "", large(fmt.Sprintf("%s-%d", prefix, n), 500_000), nil)
		if code != 201 {
			return n, code
		}
	}
	return n, 201
}

// holdsAll demands n objects as fill made them.
func holdsAll(t *testing.T, a *api, prefix string, n int) {
	t.Helper()
	for i := range n {
		var got object
		want := large(fmt.Sprintf("%s-%d", prefix, i), 500_000)
		code, err := a.call(t.Context(), "GET", collection+"/"+want.Metadata.Name, "", nil, &got)
		if code != 200 || got.Data["fill"] != want.Data["fill"] {
			t.Errorf("%s: %d, %v, %d bytes", want.Metadata.Name, code, err, len(got.Data["fill"]))
		}
	}
}

// press takes space until only so many bytes are left.
func press(t *testing.T, file *os.File, leave uint64) {
	t.Helper()
	for block := make([]byte, 64<<10); ; {
		var usage syscall.Statfs_t
		if err := syscall.Fstatfs(int(file.Fd()), &usage); err != nil {
			t.Fatal(err)
		}
		if usage.Bavail*uint64(usage.Bsize) <= leave {
			return
		}
		if _, err := file.Write(block); err != nil {
			return // there is none
		}
	}
}

// The disk fills up: writes are refused with 507, deletions and reads go on, and the
// server is not ready. What others wrote there is removed: writes go on by themselves.
// Nothing is lost by a kill -9 in the middle of it, nor by a start on a full disk.
func TestFullDisk(t *testing.T) {
	disk := small(t, 96)
	if disk == "" {
		return
	}
	dir, foreign := filepath.Join(disk, "data"), filepath.Join(disk, "foreign")
	if err := os.WriteFile(foreign, make([]byte, 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serve(t, dir)
	a := newAPI(p.url)
	n, code := fill(t.Context(), a, "a", 500)
	if code != 507 || n == 0 {
		t.Fatalf("after %d objects the answer is %d", n, code)
	}
	// Tables are merged meanwhile, which gives room back: others take it.
	pressed, err := os.Create(filepath.Join(disk, "pressed"))
	if err != nil {
		t.Fatal(err)
	}
	defer pressed.Close()
	until(t, "it is not ready", func() bool {
		press(t, pressed, 9<<20)
		code, _ := a.call(t.Context(), "GET", "/readyz", "", nil, nil)
		return code == 500
	})
	expect(t, a, 200, "GET", "/livez", nil)
	expect(t, a, 200, "GET", collection+"/a-0", nil)
	expect(t, a, 200, "DELETE", fmt.Sprintf("%s/a-%d", collection, n-1), nil)
	n--

	p.kill()
	if p = serve(t, dir); p.url == "" {
		t.Fatalf("it does not start on a full disk:\n%s", p.log.String())
	}
	a = newAPI(p.url)
	holdsAll(t, a, "a", n)
	expect(t, a, 404, "GET", fmt.Sprintf("%s/a-%d", collection, n), nil)

	// Now not a byte is left, which no reserve can foresee.
	press(t, pressed, 0)
	expect(t, a, 507, "POST", collection, large("b-0", 100))
	expect(t, a, 507, "DELETE", collection+"/a-0", nil)
	holdsAll(t, a, "a", 1)
	p.kill()
	// The start needs a little room: it comes, or it says what to do.
	if p = serve(t, dir); p.url == "" && !strings.Contains(p.log.String(), "free some space and start again") {
		t.Errorf("refused on a disk without a byte left:\n%s", p.log.String())
	}
	for _, path := range []string{pressed.Name(), foreign} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if p.url == "" {
		p = serve(t, dir)
	}
	a = newAPI(p.url)
	until(t, "it is ready again", func() bool { code, _ := a.call(t.Context(), "GET", "/readyz", "", nil, nil); return code == 200 })
	expect(t, a, 201, "POST", collection, large("b-0", 100))
	holdsAll(t, a, "a", n)
	t.Logf("%d objects of 500 kB", n)
}

// No file may be opened any more. Reads go on over the connections that
// are there; writes go on until a new log or table is needed, and again once files may be
// opened.
func TestFewFileDescriptors(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir)
	a := newAPI(p.url)
	expect(t, a, 201, "POST", collection, large("first", 100))
	reader := newAPI(p.url)
	expect(t, reader, 200, "GET", collection+"/first", nil)
	was := allowFiles(t, p, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// More than a memtable: new logs and tables are needed, and can't be opened.
	n, code := fill(ctx, a, "a", 120)
	if code != 503 && code != 504 && code != 0 {
		t.Errorf("after %d objects the answer is %d", n, code)
	}
	expect(t, reader, 200, "GET", collection+"/first", nil)
	allowFiles(t, p, was)
	until(t, "it is ready again", func() bool { code, _ := reader.call(t.Context(), "GET", "/readyz", "", nil, nil); return code == 200 })
	expect(t, newAPI(p.url), 201, "POST", collection, large("last", 100))
	p.kill()
	p = serve(t, dir)
	holdsAll(t, newAPI(p.url), "a", n)
	t.Logf("%d objects, then %d", n, code)
}

// allowFiles changes how many files a process may have open, and returns how many it
// might before.
func allowFiles(t *testing.T, p *process, n uint64) uint64 {
	t.Helper()
	var was unix.Rlimit
	pid := p.cmd.Process.Pid
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	return was.Cur
}

// More clients come than files may be open. They are kept from taking those that the
// store needs.
func TestConnectionsTakeNoFilesFromTheStore(t *testing.T) {
	p := serve(t, t.TempDir(), "sh", "-c", `ulimit -n 128; exec "$0" "$@"`)
	a := newAPI(p.url)
	expect(t, a, 201, "POST", collection, large("first", 100))
	for range 200 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if n, code := fill(ctx, a, "a", 120); n != 120 {
		t.Errorf("after %d objects the answer is %d", n, code)
	}
	holdsAll(t, a, "a", 120)
}

// So few files may be open that it can't start: it says what to raise, and with that
// all is there.
func TestTooFewFileDescriptorsToStart(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir)
	expect(t, newAPI(p.url), 201, "POST", collection, large("first", 100))
	p.kill()
	for _, limit := range []int{8, 12, 16} {
		p = serve(t, dir, "sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, limit))
		if said := p.log.String(); p.url != "" || !strings.Contains(said, "raise the limit") || strings.Contains(said, "--data-dir chooses") {
			t.Errorf("with %d: %s", limit, said)
		}
	}
	p = serve(t, dir)
	expect(t, newAPI(p.url), 200, "GET", collection+"/first", nil)
}

// Memory runs out: the kernel refuses it and the process ends in the middle of its
// work. What it acknowledged is there. With enough for its buffers it goes on.
func TestLittleMemory(t *testing.T) {
	dir := t.TempDir()
	acknowledged := 0
	for _, mib := range []int{1500, 1800, 2500} {
		p := serve(t, dir, "sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, mib<<10))
		if p.url == "" {
			t.Logf("%d MiB of address space: it does not start", mib)
			continue
		}
		prefix := fmt.Sprint(mib)
		n, code := fill(t.Context(), newAPI(p.url), prefix, 200)
		t.Logf("%d MiB of address space: %d objects of 500 kB, then %d", mib, n, code)
		p.kill()
		p = serve(t, dir)
		holdsAll(t, newAPI(p.url), prefix, n)
		acknowledged += n
		p.kill()
	}
	if acknowledged == 0 {
		t.Error("nothing was ever written")
	}
}

// Memory follows what is held, not what is written: objects of 500 kB, rewritten again
// and again, take no more than the buffers do.
func TestMemoryIsBounded(t *testing.T) {
	const mostMiB = 600
	p := serve(t, t.TempDir())
	a := newAPI(p.url)
	n, _ := fill(t.Context(), a, "a", 40)
	for range 8 {
		for i := range n {
			patch := map[string]any{"data": map[string]string{"more": fmt.Sprint(time.Now().UnixNano())}}
			expect(t, a, 200, "PATCH", fmt.Sprintf("%s/a-%d", collection, i), patch)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(after, &kib); err != nil || kib>>10 > mostMiB {
		t.Errorf("the peak is %d MiB, %v; at most %d are expected", kib>>10, err, mostMiB)
	}
	t.Logf("%d MB were written, the peak of memory was %d MiB", n*9/2, kib>>10)
}
