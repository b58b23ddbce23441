package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// shelf is a store whose lists have so many records of 100 KiB.
type shelf struct {
	accepting
	records int
	list    func(context.Context) // runs before
}

func (s shelf) State() store.State { return store.State{Current: 7} }

func (s shelf) List(ctx context.Context, _ store.ListOptions) (store.Page, error) {
	if s.list != nil {
		s.list(ctx)
	}
	page := store.Page{Revision: 7}
	for n := range s.records {
		const head = `{"metadata":{`
		value := fmt.Sprintf(head+`"name":"n%d"},"data":{"k":%q}}`, n, strings.Repeat("x", 100<<10))
		page.Records = append(page.Records, store.Record{Key: store.Key(fmt.Sprintf("configmaps/default/n%d", n)),
			Revision: 5, Value: []byte(value), VersionAt: len(head)})
	}
	return page, nil
}

// reading is a list that its client reads piece by piece.
type reading struct {
	sending
	conn net.Conn
	cut  bool // before its end
	got  int
	over bool
}

// read begins the list of a user, of which so many bytes are read every so often.
func (h *hall) read(who string, piece int, every time.Duration) *reading {
	near := h.Dial()
	h.t.Cleanup(func() { near.Close() })
	r, began := &reading{conn: near}, time.Now()
	go func() {
		fmt.Fprintf(near, "GET /api/v1/configmaps HTTP/1.1\r\nHost: x\r\nUser: %s\r\n\r\n", who)
		resp, err := http.ReadResponse(bufio.NewReaderSize(near, 512), nil)
		if err != nil {
			return // the test is over
		}
		r.code, r.header = resp.StatusCode, resp.Header
		var body strings.Builder
		for {
			n, err := io.CopyN(&body, resp.Body, int64(piece))
			r.got += int(n)
			if err != nil {
				r.took, r.body, r.over = time.Since(began), body.String(), true
				r.cut = errors.Is(err, io.ErrUnexpectedEOF)
				near.Close()
				return
			}
			select {
			case <-time.After(every):
			case <-h.Closed():
			}
		}
	}()
	synctest.Wait()
	return r
}

// hang begins a list of which nothing more is read for an hour than its beginning.
func (h *hall) hang(who string) *reading { return h.read(who, 100, time.Hour) }

// all reads a list as fast as it comes.
func (h *hall) all(who string) *reading { return h.read(who, 1<<20, 0) }

// isCut tells whether the server has closed the connection of a client that reads nothing.
func (r *reading) isCut() bool {
	_ = r.conn.SetReadDeadline(time.Now())
	_, err := r.conn.Read(make([]byte, 1))
	_ = r.conn.SetReadDeadline(time.Time{})
	return errors.Is(err, io.EOF)
}

// A client must keep taking its answer.
func TestThePaceOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		piece int
		every time.Duration
		cut   bool
		after time.Duration
	}{
		"at once":             {1 << 20, 0, false, 0},
		"no hurry":            {16 << 10, time.Second, false, 31 * time.Second},
		"at half the pace":    {16 << 10, 2 * time.Second, true, 14 * time.Second},
		"hardly":              {600, time.Second, true, 10 * time.Second},
		"beyond time for all": {17 << 10, 4 * time.Second, true, 13 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			open(t, Options{Store: shelf{records: 5}}, func(h *hall) {
				r := h.read("jane", c.piece, c.every)
				h.later(5 * time.Minute)
				// What was on its way is still read after the cut.
				if !r.over && !r.isCut() || r.over && (r.cut != c.cut || r.took < c.after-4*time.Second || r.took > c.after+8*time.Second) {
					t.Errorf("it was cut: %t, after %v and %d bytes; want %t, %v", r.cut, r.took, r.got, c.cut, c.after)
				}
				if taken := h.server.reads.taken; taken != 0 {
					t.Errorf("%d reads are not over", taken)
				}
			})
		})
	}
}

// All answers have only so much memory, of which one user has half. The one that is
// taken slowest makes room after a while. What is small asks for none.
func TestTheMemoryOfAnswers(t *testing.T) {
	open(t, Options{Store: shelf{records: 3}, MaxAnswerBytes: 1 << 20}, func(h *hall) {
		first, slow, third := h.hang("a"), h.hang("b"), h.hang("c")
		h.is(&h.all("a").sending, "a second of one user", 429, `bytes of answers that are being sent of user \"a\"`)
		h.is(&h.all("d").sending, "one that comes while nobody is slow yet", 429, "bytes of answers")
		h.is(h.send("d", 1, 200<<10, 0), "a write, which is carried out", 201, "")
		if as := &h.server.answers; as.memory > as.limit || len(as.going) != 3 {
			t.Errorf("%d bytes are held, of %d, for %d", as.memory, as.limit, len(as.going))
		}
		for _, r := range []*reading{first, third} {
			_, _ = io.CopyN(io.Discard, r.conn, 100<<10)
		}
		h.later(6 * time.Second)
		h.is(&h.all("d").sending, "one that comes later", 200, "ConfigMapList")
		if !slow.isCut() || first.isCut() || third.isCut() {
			t.Errorf("the slowest is cut: %t; others: %t, %t", slow.isCut(), first.isCut(), third.isCut())
		}
	})
}

// An answer that is longer than all may have together goes alone.
func TestAnAnswerLongerThanAll(t *testing.T) {
	open(t, Options{Store: shelf{records: 30}, MaxAnswerBytes: 1 << 20}, func(h *hall) {
		h.is(&h.all("a").sending, "alone", 200, "ConfigMapList")
		gone := h.hang("a")
		h.is(&h.all("b").sending, "a second", 429, "bytes of answers")
		gone.conn.Close()
		synctest.Wait()
		h.is(&h.all("b").sending, "when the first is gone", 200, "ConfigMapList")
	})
}

// Only so many lists are built at once. The others wait for their turn, as long as
// their requests may take, and one that panics leaves its place.
func TestListsWaitToBeBuilt(t *testing.T) {
	var let chan struct{} // of the bubble
	panics := false
	waits := func(context.Context) {
		if <-let; panics {
			panic("as the test wants it")
		}
	}
	open(t, Options{Store: shelf{records: 1, list: waits}, RequestTimeout: time.Minute}, func(h *hall) {
		let = make(chan struct{})
		var first []*reading
		for range cap(h.server.answers.places) {
			first = append(first, h.all("a"))
		}
		late := h.all("b")
		h.later(time.Minute)
		h.is(&late.sending, "one too many", 504, "nothing was stored")
		panics = true
		close(let)
		synctest.Wait()
		for _, r := range first {
			h.is(&r.sending, "one that panics", 500, "InternalError")
		}
		panics = false
		h.is(&h.all("b").sending, "one that comes then", 200, "ConfigMapList")
	})
}
