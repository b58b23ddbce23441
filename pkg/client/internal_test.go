package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

func TestFinding(t *testing.T) {
	entry := func(version, verb, id string) types.HistoryEntry {
		return types.HistoryEntry{ResourceVersion: version, Verb: verb, WriteID: id, Deleted: verb == "delete"}
	}
	const mine = "mine"
	for name, c := range map[string]struct {
		items []types.HistoryEntry // newest first
		since string
		want  retry.Finding
	}{
		"nothing is kept":                            {nil, "1", retry.NoHistory},
		"nothing is kept, for a create":              {nil, "", retry.NoHistory},
		"mine is the newest":                         {[]types.HistoryEntry{entry("2", "update", mine), entry("1", "create", "")}, "1", retry.Landed},
		"mine has others after it":                   {[]types.HistoryEntry{entry("3", "update", "x"), entry("2", "update", mine), entry("1", "create", "")}, "1", retry.Landed},
		"mine was deleted since":                     {[]types.HistoryEntry{entry("3", "delete", "x"), entry("2", "update", mine), entry("1", "create", "")}, "1", retry.Landed},
		"mine is there, its start no longer":         {[]types.HistoryEntry{entry("3", "update", "x"), entry("2", "update", mine)}, "1", retry.Landed},
		"mine is older than its start":               {[]types.HistoryEntry{entry("2", "update", "x"), entry("1", "create", mine)}, "2", retry.Absent},
		"others wrote since":                         {[]types.HistoryEntry{entry("3", "update", "x"), entry("2", "update", ""), entry("1", "create", "")}, "1", retry.Absent},
		"nobody wrote since":                         {[]types.HistoryEntry{entry("1", "create", "")}, "1", retry.Absent},
		"it does not reach back":                     {[]types.HistoryEntry{entry("3", "update", "x"), entry("2", "update", "")}, "1", retry.NoHistory},
		"a create that landed":                       {[]types.HistoryEntry{entry("1", "create", mine)}, "", retry.Landed},
		"a create that landed and was edited":        {[]types.HistoryEntry{entry("2", "update", "x"), entry("1", "create", mine)}, "", retry.Landed},
		"a create before another's":                  {[]types.HistoryEntry{entry("3", "create", "x"), entry("2", "delete", "y"), entry("1", "create", mine)}, "", retry.Landed},
		"another's create":                           {[]types.HistoryEntry{entry("2", "update", "x"), entry("1", "create", "y")}, "", retry.Absent},
		"another's create, after one long gone":      {[]types.HistoryEntry{entry("3", "create", "x"), entry("2", "delete", "y"), entry("1", "update", "z")}, "", retry.NoHistory},
		"a create whose beginning is not kept":       {[]types.HistoryEntry{entry("3", "update", "x"), entry("2", "update", "y")}, "", retry.NoHistory},
		"a delete that landed":                       {[]types.HistoryEntry{entry("2", "delete", mine), entry("1", "create", "y")}, "1", retry.Landed},
		"writes without an id are nobody's":          {[]types.HistoryEntry{entry("2", "update", ""), entry("1", "create", "")}, "", retry.Absent},
		"an apply that created is no sure beginning": {[]types.HistoryEntry{entry("1", "apply", "x")}, "", retry.NoHistory},
	} {
		if got := finding(c.items, mine, c.since); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if got := finding([]types.HistoryEntry{entry("1", "create", "")}, "", ""); got == retry.Landed {
		t.Error("a write without an id was found among entries without one")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	for value, want := range map[string]int32{
		"":                              0,
		"0":                             0,
		"7":                             7,
		"-1":                            0,
		"99999999999":                   1<<31 - 1,
		"soon":                          0,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10,
		"Fri, 02 Jan 2026 03:04:05 GMT": 0,
		"Fri, 02 Jan 2099 03:04:05 GMT": 1<<31 - 1,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: got %d, want %d", value, got, want)
		}
	}
}

func TestFailedConnectionsInWords(t *testing.T) {
	dial := func(err error) error {
		return &url.Error{Op: "Get", URL: "http://x/", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	for name, c := range map[string]struct {
		err        error
		text, next string
	}{
		"refused":       {dial(syscall.ECONNREFUSED), "connection refused", "try this"},
		"no route":      {dial(syscall.ENETUNREACH), "network is unreachable", "try this"},
		"dial timeout":  {dial(context.DeadlineExceeded), "no answer in time", "try this"},
		"unknown host":  {dial(&net.DNSError{Err: "no such host", Name: "nope", IsNotFound: true}), `no host named "nope"`, "try this"},
		"broken lookup": {dial(&net.DNSError{Err: "server misbehaving", Name: "nope"}), "could not be looked up: server misbehaving", "try this"},
		"proxy": {&url.Error{Op: "Get", Err: &net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}},
			"the proxy: connection refused", "HTTPS_PROXY"},
		"foreign certificate": {&url.Error{Op: "Get", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
			"certificate signed by unknown authority", "--certificate-authority"},
		"certificate of another host": {&url.Error{Op: "Get", Err: &tls.CertificateVerificationError{
			Err: x509.HostnameError{Host: "x", Certificate: &x509.Certificate{DNSNames: []string{"y"}}}}}, "valid for y, not x", "--certificate-authority"},
		"reset":           {&url.Error{Op: "Get", Err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}, "connection reset by peer", "try this"},
		"anything else":   {&url.Error{Op: "Get", URL: "http://x/", Err: errors.New("net/http: strange things")}, "strange things", "try this"},
		"a plugin failed": {&url.Error{Op: "Get", URL: "http://x/", Err: errors.New("getting credentials: exec: not found")}, "getting credentials", "try this"},
	} {
		got := (&endpoint{}).failedConnection(c.err, "try this")
		if !strings.Contains(got.text, c.text) || !strings.Contains(got.next, c.next) {
			t.Errorf("%s: got %q and %q, want %q and %q", name, got.text, got.next, c.text, c.next)
		}
		for _, noise := range []string{"Get ", "dial tcp", "net/http", "x509:"} {
			if strings.Contains(got.text, noise) {
				t.Errorf("%s: %q holds %q", name, got.text, noise)
			}
		}
		if !errors.Is(got.err, c.err) {
			t.Errorf("%s: the cause itself is gone", name)
		}
	}
}

// A plugin that fails may need what is out of reach as well; but one that never
// gave credentials is probably set up wrong.
func TestAWatchOutlivesItsCredentialPlugin(t *testing.T) {
	for _, synced := range []bool{true, false} {
		f := &follower{synced: synced, WatchOptions: WatchOptions{Patient: true}}
		if got := f.mayPass(&CredentialsError{}); got != synced {
			t.Errorf("synced %v: goes on %v", synced, got)
		}
	}
}
