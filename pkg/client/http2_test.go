package client_test

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
)

// What little of HTTP/2 the test below speaks.
const (
	preface       = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	flagAck       = 0x1 // of settings
	flagEnd       = 0x1 // of headers and data: the request ends here
	refusedStream = 0x7
)

// resetting is an HTTP/2 server that reads each request whole and answers with
// a reset that claims to have refused it. Go's client sends such a request
// again by itself if it can get the body again.
type resetting struct {
	requests chan struct{} // one each; deep enough for every test
	wait     chan struct{}
}

func serveResetting(t *testing.T) (address string, r *resetting) {
	t.Helper()
	cert := tlsCertificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	r = &resetting{requests: make(chan struct{}, 64), wait: make(chan struct{})}
	go func() {
		defer close(r.wait)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.serve(conn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-r.wait })
	return "https://" + l.Addr().String(), r
}

// serve handles one connection until the client closes it.
func (r *resetting) serve(conn net.Conn) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(preface))); err != nil {
		return
	}
	send := func(kind, flags byte, stream uint32, payload []byte) {
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
		frame = append(frame, flags)
		frame = binary.BigEndian.AppendUint32(frame, stream)
		_, _ = conn.Write(append(frame, payload...)) // a client that is gone shows on the next read
	}
	send(frameSettings, 0, 0, nil)
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, length); err != nil {
			return
		}
		kind, flags := head[3], head[4]
		switch {
		case kind == frameSettings && flags&flagAck == 0:
			send(frameSettings, flagAck, 0, nil)
		case (kind == frameHeaders || kind == frameData) && flags&flagEnd != 0:
			r.requests <- struct{}{}
			send(frameReset, 0, binary.BigEndian.Uint32(head[5:]), []byte{0, 0, 0, refusedStream})
		}
	}
}

func TestAWriteIsSentOnceOverHTTP2(t *testing.T) {
	for _, verb := range writes {
		t.Run(verb, func(t *testing.T) {
			address, server := serveResetting(t)
			c := connect(t, client.TargetOptions{Server: address, Credentials: client.Credentials{InsecureSkipTLSVerify: true}},
				client.Options{RequestTimeout: 2 * time.Second})
			err := calls[verb](t.Context(), c.ConfigMaps(namespace))
			if !isLost(err) {
				t.Errorf("got %v, want a LostError", err)
			}
			if n := len(server.requests); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}
