// Package conformance replays what a kube-apiserver was recorded to answer to
// requests for ConfigMaps, and compares the answers exactly: status, headers,
// bodies, messages and streams of events.
//
//	scenarios, err := conformance.Load(os.DirFS("testdata"))
//	server := conformance.Server{URL: "http://127.0.0.1:8080"}
//	answers, err := server.Replay(scenarios[0])
//	for i, step := range scenarios[0].Steps {
//		mismatches := conformance.Compare(step.Wanted(), answers[i])
//	}
//
// Versions, uids, times and other values that differ from run to run are
// replaced by symbols on both sides first; equal values get equal symbols.
// README.md beside tells the format of the recordings, and testdata/differences.yaml
// where our answer is another one on purpose.
package conformance
