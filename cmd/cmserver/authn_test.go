package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// The tokens of the tests' users.
const (
	janesToken = "jane-0123456789abcdefghijkl"
	joesToken  = "joe-0123456789abcdefghijklm"
)

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// as does a request with a token, if there is one.
func (p *program) as(token, method, path, body string) (code int, text string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// name is who the server takes the holder of a token for, empty if it refuses them.
func (p *program) name(token string) string {
	p.t.Helper()
	code, text := p.as(token, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}")
	if code != 201 {
		return ""
	}
	var review authenticationv1.SelfSubjectReview
	if err := json.Unmarshal([]byte(text), &review); err != nil {
		p.t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

// prints runs a command that succeeds, and returns what it prints on stdout.
func prints(t *testing.T, args ...string) string {
	t.Helper()
	code, out, said := invoke(t, nil, args...)
	if code != 0 {
		t.Fatalf("cmserver %v ended with %d: %s", args, code, said)
	}
	return out
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to pass that %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestSettingsOfAuthentication(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	tokens, broken := writeFile(t, "tokens.csv", janesToken+",jane,"), writeFile(t, "broken.csv", janesToken+",jane")
	issuer := []string{"--oidc-issuer-url", "https://issuer.example", "--oidc-client-id", "cmserver"}
	encrypted := []string{"--tls-cert-file", "x", "--tls-private-key-file", "x"}
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"nobody is let in", []string{"--anonymous-auth=false"}, []string{"--client-ca-file", "--token-auth-file", "--oidc-issuer-url", "--listen unix:"}},
		{"a missing file of tokens", []string{"--token-auth-file", tokens + ".not"}, []string{"--token-auth-file", tokens + ".not"}},
		{"a broken file of tokens", []string{"--token-auth-file", broken}, []string{"--token-auth-file", broken, "line 1"}},
		{"a missing authority", append(encrypted, "--client-ca-file", tokens+".not"), []string{"--client-ca-file", tokens + ".not"}},
		{"certificates without TLS", []string{"--client-ca-file", tokens}, []string{"--client-ca-file", "add --tls-cert-file and --tls-private-key-file"}},
		{"tokens as authority", append(encrypted, "--client-ca-file", tokens), []string{"--client-ca-file", tokens, "no certificate"}},
		{"an issuer without a client", issuer[:2], []string{"--oidc-client-id"}},
		{"a client without an issuer", issuer[2:], []string{"--oidc-client-id", "--oidc-issuer-url"}},
		{"a claim without an issuer", []string{"--oidc-username-claim", "email"}, []string{"--oidc-username-claim", "--oidc-issuer-url"}},
		{"algorithms without an issuer", []string{"--oidc-signing-algs", "ES256"}, []string{"--oidc-signing-algs", "--oidc-issuer-url"}},
		{"a prefix without an issuer", []string{"--oidc-username-prefix", "x"}, []string{"--oidc-username-prefix", "--oidc-issuer-url"}},
		{"a demanded claim without an issuer", []string{"--oidc-required-claim", "a=b"}, []string{"--oidc-required-claim"}},
		{"an issuer by http", []string{"--oidc-issuer-url", "http://issuer.example", "--oidc-client-id", "x"}, []string{"https://"}},
		{"a secret algorithm", append(issuer, "--oidc-signing-algs", "RS256,HS256"), []string{`"HS256"`, "RS256, RS384"}},
		{"a demanded claim without a value", append(issuer, "--oidc-required-claim", "hd"), []string{`"hd"`, "CLAIM=VALUE"}},
		{"a demanded claim twice", append(issuer, "--oidc-required-claim", "hd=x", "--oidc-required-claim", "hd=y"), []string{"once"}},
		{"a missing authority of the issuer", append(issuer, "--oidc-ca-file", tokens+".not"), []string{"--oidc-ca-file", tokens + ".not"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run(t.Context(), append([]string{"--in-memory", "--listen", "127.0.0.1:0"}, c.args...), streams{out: io.Discard, err: io.Discard})
			if exitCode(err) != 2 {
				t.Fatalf("it ended with %v", err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if strings.Contains(err.Error(), janesToken) {
				t.Errorf("it tells a token: %v", err)
			}
		})
	}
}

// Lists come from flags, variables and the file alike.
func TestListsOfSettings(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	issuer := []string{"--oidc-issuer-url", "https://issuer.example", "--oidc-client-id", "cmserver"}
	file := writeFile(t, "config.yaml", "oidc-required-claim: [a=b, 'c=d,e']\noidc-signing-algs: [ES256, RS256]\n")
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"default": {nil, nil, "map[] [RS256]"},
		"flags":   {[]string{"--oidc-required-claim", "a=b", "--oidc-required-claim", "c=d,e", "--oidc-signing-algs", "ES256,RS256"}, nil, "map[a:b c:d,e] [ES256 RS256]"},
		"file":    {[]string{"--config", file}, nil, "map[a:b c:d,e] [ES256 RS256]"},
		"variables": {nil, map[string]string{"CMSERVER_OIDC_REQUIRED_CLAIM": "a=b", "CMSERVER_OIDC_SIGNING_ALGS": "ES256,RS256"},
			"map[a:b] [ES256 RS256]"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range test.env {
				t.Setenv(key, value)
			}
			c, err := load(t, append(test.args, issuer...)...)
			if err != nil {
				t.Fatal(err)
			}
			required, err := c.requiredClaims()
			if got := fmt.Sprint(required, " ", c.OIDCSigningAlgs); err != nil || got != test.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

// Tokens come and go while the server runs; a broken file changes nothing, and the
// probes tell of it. No token is ever logged.
func TestTokensComeAndGo(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	file := writeFile(t, "tokens.csv", janesToken+",jane,u-1,devs\n")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--in-memory", "-v", "--token-auth-file", file)
	defer p.end()
	if code, text := p.as(janesToken, "POST", collection, `{"metadata":{"name":"flags"}}`); code != 201 {
		t.Errorf("jane: %d %s", code, text)
	}
	if code, text := p.as(janesToken, "GET", collection+"/flags/history", ""); code != 200 || !strings.Contains(text, `"user":"jane"`) {
		t.Errorf("the history: %d %s", code, text)
	}
	for _, c := range []struct {
		token, path string
		code        int
	}{
		{"", collection, 403}, {"", "/api", 403}, {"", "/version", 200}, {"", "/readyz", 200},
		{joesToken, collection, 401}, {joesToken, "/version", 401}, {joesToken, "/readyz", 401}, {joesToken, "/nowhere", 401},
	} {
		if code, text := p.as(c.token, "GET", c.path, ""); code != c.code {
			t.Errorf("%q on %s: %d %s", c.token, c.path, code, text)
		}
	}
	change := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change(janesToken + ",jane,u-1,devs\n" + joesToken + ",joe,u-2\n")
	eventually(t, "joe is let in", func() bool { return p.name(joesToken) == "joe" })
	change(joesToken + ",joe\n")
	eventually(t, "a probe tells of the broken file", func() bool {
		_, text := p.as("", "GET", "/readyz?verbose", "")
		return strings.Contains(text, "[!]token-auth-file")
	})
	if got := p.name(janesToken); got != "jane" {
		t.Errorf("with a broken file, jane is %q", got)
	}
	change(joesToken + ",joe,u-2\n")
	eventually(t, "jane is refused", func() bool { return p.name(janesToken) == "" })
	if got := p.name(joesToken); got != "joe" {
		t.Errorf("joe is %q", got)
	}
	log := p.log.String()
	for _, part := range []string{"others may read", "line 1: it has 2 fields", "credentials were refused", "everyone who is authenticated may do everything", "user=jane"} {
		if !strings.Contains(log, part) {
			t.Errorf("%q is not in the log", part)
		}
	}
	if strings.Contains(log, janesToken) || strings.Contains(log, joesToken) {
		t.Errorf("the log has a token:\n%s", log)
	}
}

func TestNobodyIsAnonymous(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	p := launch(t, "--in-memory", "--anonymous-auth=false", "--token-auth-file", writeFile(t, "tokens.csv", janesToken+",jane,"))
	defer p.end()
	for path, want := range map[string]int{"/version": 401, "/readyz": 401, collection: 401} {
		if code, text := p.as("", "GET", path, ""); code != want || !strings.Contains(text, `"reason":"Unauthorized"`) {
			t.Errorf("%s: %d %s", path, code, text)
		}
		if code, text := p.as(janesToken, "GET", path, ""); code != 200 {
			t.Errorf("jane on %s: %d %s", path, code, text)
		}
	}
}

// An issuer that is down keeps no server from starting, and probes tell of it.
func TestAnIssuerThatIsDownKeepsNothingDown(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	gone := httptest.NewTLSServer(http.NotFoundHandler())
	gone.Close()
	p := launch(t, "--in-memory", "--oidc-issuer-url", gone.URL, "--oidc-client-id", "cmserver")
	defer p.end()
	eventually(t, "the log tells of it", func() bool { return strings.Contains(p.log.String(), "issuer can't be used") })
	if _, text := p.as("", "GET", "/readyz?verbose", ""); !strings.Contains(text, "[!]oidc-issuer") {
		t.Errorf("the probe says %s", text)
	}
	if code, _ := p.as("a.b.c", "GET", "/version", ""); code != 401 {
		t.Errorf("its tokens: %d", code)
	}
}

// A token that was made lets its holder in, and the file doesn't have it.
func TestTokenCommand(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	file := filepath.Join(t.TempDir(), "tokens.csv")
	janes := strings.TrimSpace(prints(t, "token", "jane", "--uid", "u-1", "--group", "devs", "--group", "ops", "--add-to", file))
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.TrimSpace(before), 0o600); err != nil { // its last line is not ended
		t.Fatal(err)
	}
	token, line, _ := strings.Cut(prints(t, "token", "joe"), "\n")
	joes := strings.TrimSpace(prints(t, "token", "joe", "--add-to", file))
	if after, err := os.ReadFile(file); err != nil || bytes.Contains(after, []byte(janes)) || bytes.Contains(after, []byte(joes)) ||
		strings.Contains(line, token) || !strings.HasPrefix(line, "sha256:") || !strings.HasSuffix(line, ",joe,\n") {
		t.Errorf("the file has %s, %v; the line is %s", after, err, line)
	}
	p := launch(t, "--in-memory", "--token-auth-file", file)
	defer p.end()
	for token, want := range map[string]string{janes: "jane", joes: "joe", token: "", "": ""} {
		if got := p.name(token); got != want {
			t.Errorf("%s is %q", want, got)
		}
	}
}

func TestWhatTokenRefuses(t *testing.T) {
	broken := writeFile(t, "tokens.csv", janesToken+",jane\n")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no user", []string{"token"}, 2, "one argument"},
		{"two users", []string{"token", "a", "b"}, 2, "one argument"},
		{"an odd user", []string{"token", " jane"}, 2, "space"},
		{"a group with a comma", []string{"token", "jane", "--group", "a,b"}, 2, "comma"},
		{"another kind of file", []string{"token", "jane", "--add-to", broken}, 1, "no file of tokens"},
		{"a folder", []string{"token", "jane", "--add-to", t.TempDir()}, 1, "no token was made"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, said := invoke(t, nil, c.args...)
			if code != c.code || stdout != "" || !strings.Contains(said, c.says) || strings.Contains(said, janesToken) {
				t.Errorf("%d, %q, %s", code, stdout, said)
			}
		})
	}
	if content, err := os.ReadFile(broken); err != nil || string(content) != janesToken+",jane\n" {
		t.Errorf("the file has %s, %v", content, err)
	}
}
