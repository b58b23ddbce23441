package etcd

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

func TestReleasesWhoseNoticesOfProgressAreAProof(t *testing.T) {
	for release, want := range map[string]bool{
		"3.3.27": false, "3.4.0": false, "3.4.23": false, "3.4.30": false, "3.4.31": true, "3.4.40": true,
		"3.5.0-rc.1": false, "3.5.0": false, "3.5.12": false, "3.5.13": true, "3.5.21": true,
		"3.6.0-alpha.0": false, "3.6.0": true, "3.7.3": true, "4.0.0": true,
		"": false, "unknown": false, "3.5": false,
	} {
		if got := provesProgress(release); got != want {
			t.Errorf("%s: %t, want %t", release, got, want)
		}
	}
}

// A bookmark, or a state that is told as reached, must not be ahead of a change that comes later.
func TestANoticeOfProgressThatIsNoProofMovesNothing(t *testing.T) {
	for direct, want := range map[bool]store.Revision{true: 5, false: 9} {
		s := &Store{}
		s.mode.direct = direct
		s.cache.publish(index.State{Tree: index.NewTree(), Current: 5})
		notice := clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: 9}}
		if err := s.apply(notice); err != nil {
			t.Fatal(err)
		}
		if got := s.cache.state().Current; got != want {
			t.Errorf("where reads are direct is %t: the index is at %d, want %d", direct, got, want)
		}
	}
}
