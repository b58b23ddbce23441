package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// pluginUser is a user of a kubeconfig whose credentials a shell script gives.
func pluginUser(t *testing.T, script string) string {
	t.Helper()
	plugin := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never, installHint: ask the admins}}`, plugin)
}

func TestACredentialPluginThatFailsStopsTheRequest(t *testing.T) {
	api := record(realAPI(t))
	server, _ := tlsServer(t, api)
	for name, c := range map[string]struct{ user, want string }{
		"missing": {`{exec: {apiVersion: client.authentication.k8s.io/v1, command: /no/such/plugin, interactiveMode: Never, installHint: ask the admins}}`,
			"/no/such/plugin"},
		"failing":   {pluginUser(t, "exit 3"), "exit code 3"},
		"no answer": {pluginUser(t, "echo hello"), "decoding stdout"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, client.TargetOptions{Kubeconfig: kubeconfigWith(t, server, c.user)}, client.Options{})
			_, err := conn.ServerVersion(t.Context())
			if !errors.As(err, new(*client.CredentialsError)) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "ask the admins") {
				t.Errorf("got %v", err)
			}
			if client.IsUnreachable(err) || errors.As(err, new(*retry.UnsentError)) {
				t.Errorf("it looks like something to try again: %v", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("it has several lines: %q", err)
			}
		})
	}
	if len(api.sent(http.MethodGet)) > 0 {
		t.Error("a request was sent without credentials")
	}
}

// The time that a request may take counts for its plugin, and a write that was
// given up for it is never sent, however late the credentials come.
func TestACredentialPluginThatHangsIsNotWaitedFor(t *testing.T) {
	api := record(realAPI(t))
	server, _ := tlsServer(t, api)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// The end that is open here keeps the plugin reading until it is closed.
	hold, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	user := pluginUser(t, fmt.Sprintf(`read line < %q
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"late"}}'
`, pipe))
	where := client.TargetOptions{Kubeconfig: kubeconfigWith(t, server, user)}
	hasty := connect(t, where, client.Options{RequestTimeout: time.Millisecond})
	_, err = hasty.ConfigMaps("default").Create(t.Context(), types.NewDocument("default", "late"), "w-1")
	if !errors.As(err, new(*client.CredentialsError)) || !strings.Contains(err.Error(), "within 1ms") || errors.As(err, new(*retry.LostError)) {
		t.Errorf("got %v", err)
	}
	if _, err := hold.WriteString("go on\n"); err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	// The library has one plugin run for both, and the second waits for its end.
	patient := connect(t, where, client.Options{})
	if _, err := patient.ServerVersion(t.Context()); err != nil {
		t.Error(err)
	}
	if len(api.sent(http.MethodPost)) > 0 {
		t.Error("the write that was given up went out")
	}
}

func TestAContextThatNamesWhatIsNotThere(t *testing.T) {
	file := writeFile(t, `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: user, context: {cluster: c, user: zz}}
- {name: cluster, context: {cluster: yy, user: u}}
- {name: nobody, context: {cluster: c}}
`)
	for name, want := range map[string]string{"user": `its user "zz" is not there; there are: u`, "cluster": `its cluster "yy" is not there; there are: c`} {
		if _, err := client.ResolveTarget(client.TargetOptions{Kubeconfig: file, Context: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, o := range map[string]client.TargetOptions{
		"a token takes the user's place": {Kubeconfig: file, Context: "user", Credentials: client.Credentials{Token: "t"}},
		"a context may have no user":     {Kubeconfig: file, Context: "nobody"},
	} {
		if _, err := client.ResolveTarget(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheProxyOfAKubeconfigIsNamed(t *testing.T) {
	file := writeFile(t, `
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://cm.example", proxy-url: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
`)
	_, err := connect(t, client.TargetOptions{Kubeconfig: file}, client.Options{}).ServerVersion(t.Context())
	if err == nil || !strings.Contains(err.Error(), "proxy-url") || strings.Contains(err.Error(), "HTTPS_PROXY") {
		t.Errorf("got %v", err)
	}
}
