package conformance

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// defaultWatchTimeout limits a watch that says nothing else.
const defaultWatchTimeout = 5 * time.Second

// watch opens a stream, runs the steps during it on another connection, and
// reads the events that the step awaits.
func (r *replay) watch(s Step, req request) (any, error) {
	limit := time.Duration(s.Timeout) * time.Second
	if limit == 0 {
		limit = defaultWatchTimeout
	}
	conn, err := r.client.open(limit)
	if err != nil {
		return unanswered(err), nil
	}
	defer conn.Close()
	resp, err := r.client.send(conn, req)
	if err != nil {
		return unanswered(err), nil
	}
	if resp.StatusCode != http.StatusOK {
		return r.refusedWatch(s, resp), nil
	}
	out := r.head(resp)
	if len(s.During) > 0 {
		during := array{}
		for _, d := range s.During {
			answer, err := r.run(d)
			if err != nil {
				return nil, err
			}
			during = append(during, answer)
		}
		out = out.with("during", during)
	}
	// What happened during the watch does not shorten it.
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return unanswered(err), nil
	}
	events, closed := r.events(s, resp.Body)
	out = out.with("events", events)
	if s.Events == nil {
		out = out.with("closed", closed)
	}
	return out, nil
}

func (r *replay) refusedWatch(s Step, resp *http.Response) object {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return unanswered(err)
	}
	return r.answer(s, resp, body)
}

// events reads as many events as the step awaits, or all. It tells whether the
// stream ended, rather than the time.
func (r *replay) events(s Step, stream io.Reader) (events array, closed bool) {
	events = array{}
	seen := array{}
	defer func() { r.save(s, seen) }()
	for lines := bufio.NewReader(stream); s.Events == nil || len(events) < *s.Events; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return events, false
		}
		if len(bytes.TrimSpace(line)) > 0 {
			event, decoded := r.event(line)
			events = append(events, event)
			if decoded != nil {
				seen = append(seen, decoded)
			}
		}
		if err != nil {
			return events, true
		}
	}
	return events, false
}

// event normalizes a line of the stream, which should be an event, and gives
// the value that was decoded.
func (r *replay) event(line []byte) (event, decoded any) {
	decoded, err := decodeJSON(line)
	if err != nil {
		return object{{"text", strings.ToValidUTF8(string(line), "\uFFFD")}}, nil
	}
	o, _ := decoded.(object)
	kind, content := o.get("type"), o.get("object")
	if len(o) != 2 || kind == (absent{}) || content == (absent{}) {
		return object{{"notAnEvent", r.normalizer.value(decoded)}}, decoded
	}
	normalize := r.normalizer.value
	if kind == "BOOKMARK" {
		normalize = r.normalizer.bookmark
	}
	return object{{"type", kind}, {"object", normalize(content)}}, decoded
}
