package etcd

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"
)

// members are those of the cluster that were named. One that doesn't answer, or has lost its
// leader, is left out until it does: a connection to a member that stands still looks like
// one to any other, and gRPC notices only after some ten seconds.
type members struct {
	looking singleflight.Group

	mu   sync.Mutex        // guards what follows
	told map[string]string // the release of each, by its endpoint, as it told last
	used []string          // endpoints that requests go to
	out  bool              // there are others

	// doubted tells the one who looks after the cluster that an answer was missing. It has
	// room for one signal; a second says no more than the first.
	doubted chan struct{}
}

func (m *members) init(endpoints []string) {
	m.told, m.used, m.doubted = map[string]string{}, endpoints, make(chan struct{}, 1)
}

// doubt has it looked into which members answer.
func (m *members) doubt() {
	select {
	case m.doubted <- struct{}{}:
	default:
	}
}

func (m *members) someAreOut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out
}

// look asks all members whether they are there, has requests go to those that are, and returns
// the releases of all, in order. One that is away counts with what it told last: it comes back
// as that, or newer. Who asks at the same time shares the answers.
func (m *members) look(ctx context.Context, s *Store) []string {
	all, _, _ := m.looking.Do("", func() (any, error) { return m.lookOnce(ctx, s), nil })
	return all.([]string)
}

func (m *members) lookOnce(ctx context.Context, s *Store) []string {
	var asking sync.WaitGroup
	there := make([]bool, len(s.opts.Endpoints))
	for i, endpoint := range s.opts.Endpoints {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, s.patience())
			defer cancel()
			status, err := s.client.Status(ctx, endpoint)
			if err == nil {
				m.tell(endpoint, status.Version)
				there[i] = s.limited || status.Leader != 0
			}
		})
	}
	asking.Wait()
	var used []string
	for i, endpoint := range s.opts.Endpoints {
		if there[i] {
			used = append(used, endpoint)
		}
	}
	if used == nil {
		used = s.opts.Endpoints // nobody knows which one will be back first
	}
	return m.use(s, used)
}

func (m *members) tell(endpoint, release string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told[endpoint] = release
}

func (m *members) use(s *Store, used []string) (releases []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.used, used) {
		m.used, m.out = used, len(used) < len(s.opts.Endpoints)
		s.client.SetEndpoints(used...)
		s.log.Info("store: requests go to the members of etcd that answer", "members", used)
	}
	for _, endpoint := range s.opts.Endpoints {
		releases = append(releases, m.told[endpoint])
	}
	slices.Sort(releases)
	return releases
}
