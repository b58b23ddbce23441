package etcd

import "testing"

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
