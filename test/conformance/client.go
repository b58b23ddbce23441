package conformance

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// requestTimeout limits a request with its answer.
	requestTimeout = 30 * time.Second
	// keepAliveBody is the body size in bytes up to which a connection is used
	// again: a server that refuses a larger one may close without having read it.
	keepAliveBody = 1 << 20
)

// client speaks HTTP/1.1 itself, because net/http's client would add headers,
// and would refuse what some requests are about. It keeps one connection, and is
// for one goroutine.
type client struct {
	scheme, host, base string
	token              string
	kept               *connection // nil: none is open
}

// connection is a connection with what was read ahead from it.
type connection struct {
	net.Conn
	reader *bufio.Reader
}

func newClient(s Server) (*client, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, fmt.Errorf("server URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("server URL %q: want http://HOST:PORT or https://HOST:PORT", s.URL)
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return &client{scheme: u.Scheme, host: host, base: strings.TrimSuffix(u.Path, "/"), token: s.Token}, nil
}

// open makes a new connection, on which everything must be done within the limit.
func (c *client) open(limit time.Duration) (*connection, error) {
	conn, err := net.DialTimeout("tcp", c.host, limit)
	if err != nil {
		return nil, err
	}
	if c.scheme == "https" {
		// Certificates are not checked: test servers sign their own.
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	opened := &connection{Conn: conn, reader: bufio.NewReader(conn)}
	if err := opened.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// send writes a request and reads the answer up to its body.
func (c *client) send(conn *connection, r request) (*http.Response, error) {
	// What can't be written whole may still have been answered: a server need
	// not read a body that is too large to the end.
	_, unsent := conn.Write(c.encode(r))
	resp, err := http.ReadResponse(conn.reader, &http.Request{Method: r.method})
	if err != nil {
		return nil, errors.Join(err, unsent)
	}
	return resp, nil
}

func (c *client) encode(r request) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s%s HTTP/1.1\r\nHost: %s\r\n", r.method, c.base, r.target, c.host)
	if c.token != "" {
		fmt.Fprintf(&out, "Authorization: Bearer %s\r\n", c.token)
	}
	for _, h := range r.headers {
		if h.value != nil {
			fmt.Fprintf(&out, "%s: %s\r\n", h.key, h.value)
		}
	}
	if r.body != nil || r.method == http.MethodPost || r.method == http.MethodPut || r.method == http.MethodPatch {
		fmt.Fprintf(&out, "Content-Length: %d\r\n", len(r.body))
	}
	out.WriteString("\r\n")
	out.Write(r.body)
	return out.Bytes()
}

// call sends a request on the kept connection and reads the whole answer.
func (c *client) call(r request) (*http.Response, []byte, error) {
	resp, body, err := c.tryCall(r)
	if err != nil || resp.Close || len(r.body) > keepAliveBody {
		c.close()
	}
	return resp, body, err
}

func (c *client) tryCall(r request) (*http.Response, []byte, error) {
	if c.kept == nil {
		opened, err := c.open(requestTimeout)
		if err != nil {
			return nil, nil, err
		}
		c.kept = opened
	}
	if err := c.kept.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, nil, err
	}
	resp, err := c.send(c.kept, r)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// close closes the kept connection, whose answers have been read.
func (c *client) close() {
	if c.kept != nil {
		_ = c.kept.Close() // nothing of it is needed any more
		c.kept = nil
	}
}
