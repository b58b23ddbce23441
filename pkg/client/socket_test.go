package client_test

import (
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/cmctl/pkg/client"
)

// A server on a unix socket is reached as any other, whatever proxy there is.
func TestAServerOnASocket(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	path := filepath.Join(t.TempDir(), "cm.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(realAPI(t))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	c := connect(t, client.TargetOptions{Server: "unix://" + path}, client.Options{})
	for _, verb := range writes {
		err := calls[verb](t.Context(), c.ConfigMaps(namespace))
		if isUnsent(err) || isLost(err) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	c.CloseIdleConnections()
	s.Close()

	err = calls["put"](t.Context(), c.ConfigMaps(namespace))
	if !isUnsent(err) || !strings.Contains(err.Error(), "cannot reach unix://"+path) {
		t.Errorf("without a server: %v", err)
	}
	if os.Getuid() == 0 {
		return // may connect to any
	}
	if err := errors.Join(os.WriteFile(path, nil, 0), os.Chmod(path, 0)); err != nil && !errors.Is(err, syscall.ENOENT) {
		t.Fatal(err)
	}
	if err := calls["put"](t.Context(), c.ConfigMaps(namespace)); !strings.Contains(err.Error(), "may not connect") {
		t.Errorf("without permission: %v", err)
	}
}

// Plain HTTP to a server that speaks TLS says what to do.
func TestHTTPToAnHTTPSServer(t *testing.T) {
	s := httptest.NewTLSServer(realAPI(t))
	defer s.Close()
	c := connect(t, client.TargetOptions{Server: strings.Replace(s.URL, "https", "http", 1)}, client.Options{})
	err := calls["put"](t.Context(), c.ConfigMaps(namespace))
	if err == nil || !strings.Contains(err.Error(), "it speaks https") {
		t.Errorf("got %v", err)
	}
}
