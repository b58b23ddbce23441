package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// CredentialsError says that the credential plugin of a kubeconfig gave nothing
// to send. The server was not asked.
type CredentialsError struct {
	Server string // as Target names it
	Plugin string // the command
	Cause  string // in words for a person
	Hint   string // what the kubeconfig says of how to install it, empty if nothing
	Err    error
}

func (e *CredentialsError) Error() string {
	text := fmt.Sprintf("no credentials for %s: the plugin %q of the kubeconfig: %s; nothing was sent", e.Server, e.Plugin, e.Cause)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

func (e *CredentialsError) Unwrap() error { return e.Err }

// noCredentials completes the error of a plugin with what the client knows.
func (c *Client) noCredentials(e exchange, failed *pluginError) error {
	plugin := e.peer.config.ExecProvider
	made := &CredentialsError{Server: e.peer.String(), Plugin: plugin.Command, Hint: hintOf(plugin), Cause: pluginFault(failed.err), Err: failed.err}
	if e.callCtx.Err() != nil {
		why := c.cause(e, failed.err)
		made.Cause, made.Err = "it has not ended: "+why.text+"; --request-timeout sets how long to wait", why.err
	}
	return made
}

func hintOf(plugin *api.ExecConfig) string {
	return strings.Join(strings.Fields(plugin.InstallHint), " ")
}

// pluginFault is what the library says of a plugin: the first line, for the
// others tell of plugins in general.
func pluginFault(err error) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(plain(err), "getting credentials: "), "\n")
	return strings.TrimPrefix(first, "exec: ")
}

// pluginError is why a credential plugin gave nothing.
type pluginError struct{ err error }

func (e *pluginError) Error() string { return e.err.Error() }
func (e *pluginError) Unwrap() error { return e.err }

// boundPlugin makes the context of a request count for the credential plugin that
// runs before it, which the library lets run for as long as it likes. It returns
// what to wrap around the transport that is made of the config.
func boundPlugin(config *rest.Config) func(http.RoundTripper) http.RoundTripper {
	if config.ExecProvider == nil {
		return func(rt http.RoundTripper) http.RoundTripper { return rt }
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &afterPlugin{next} })
	return func(next http.RoundTripper) http.RoundTripper { return &aroundPlugin{next} }
}

// pluginRun is the part of a request in which the plugin may run.
type pluginRun struct{ state atomic.Int32 }

const (
	pluginRuns      = iota
	pluginDone      // the request goes on to the server
	pluginAbandoned // and never will
)

type pluginRunKey struct{}

var errAbandoned = errors.New("the credentials came too late")

// aroundPlugin runs what is inside of it, the plugin first of all, and leaves it
// alone when the context ends while the plugin runs: such a request never goes
// out. A plugin that hangs goes on by itself; there is no way to end it.
type aroundPlugin struct{ next http.RoundTripper }

func (t *aroundPlugin) RoundTrip(req *http.Request) (*http.Response, error) {
	type answer struct {
		resp *http.Response
		err  error
	}
	run := &pluginRun{}
	done := make(chan answer, 1) // has room for the answer that nobody waits for
	inner := req.WithContext(context.WithValue(req.Context(), pluginRunKey{}, run))
	go func() {
		resp, err := t.next.RoundTrip(inner)
		done <- answer{resp, err}
	}()
	var a answer
	select {
	case a = <-done:
	case <-req.Context().Done():
		if run.state.CompareAndSwap(pluginRuns, pluginAbandoned) {
			return nil, &pluginError{context.Cause(req.Context())}
		}
		a = <-done
	}
	if a.err != nil && run.state.Load() != pluginDone {
		return nil, &pluginError{a.err}
	}
	return a.resp, a.err
}

// WrappedRoundTripper is how the library finds the transport inside.
func (t *aroundPlugin) WrappedRoundTripper() http.RoundTripper { return t.next }

// afterPlugin is where a request arrives once it has its credentials.
type afterPlugin struct{ next http.RoundTripper }

func (t *afterPlugin) RoundTrip(req *http.Request) (*http.Response, error) {
	run, ok := req.Context().Value(pluginRunKey{}).(*pluginRun)
	if ok && !run.state.CompareAndSwap(pluginRuns, pluginDone) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, errAbandoned
	}
	return t.next.RoundTrip(req)
}

// WrappedRoundTripper is how the library finds the transport inside.
func (t *afterPlugin) WrappedRoundTripper() http.RoundTripper { return t.next }
