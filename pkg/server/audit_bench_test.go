package server_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/audit"
)

// BenchmarkAudited are writes and reads without an audit log and with one in a file.
func BenchmarkAudited(b *testing.B) {
	policies := map[string]*audit.Policy{"off": nil, "default": audit.DefaultPolicy(false), "strict": audit.DefaultPolicy(true),
		"bodies": policyOf(b, "rules: [{level: RequestResponse}]")}
	for _, mode := range []string{"off", "default", "strict", "bodies"} {
		var options []option
		if policy := policies[mode]; policy != nil {
			log, err := audit.Open(audit.Options{Path: filepath.Join(b.TempDir(), "audit.log"), MaxSize: 100, MaxBackups: 1})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = log.Close() }) // of a benchmark
			options = append(options, func(o *server.Options) {
				o.Audit = &audit.Recorder{Sink: log, Policy: func() *audit.Policy { return policy }, Strict: mode == "strict"}
			})
		}
		for _, clients := range []int{1, 32} {
			b.Run(fmt.Sprintf("put/%s/clients=%d", mode, clients), func(b *testing.B) {
				b.ReportAllocs()
				a := start(b, append(options, putMode(server.PutAlways))...)
				a.pool(clients)
				for i := range clients {
					a.must(201, "POST", collection, named(fmt.Sprintf("n%d", i)))
				}
				var n atomic.Int64
				spread(b, clients, func(i int) {
					a.fetch("PUT", fmt.Sprintf("%s/n%d", collection, i), fmt.Sprintf(`{"metadata":{"name":"n%d"},"data":{"k":"%d"}}`, i, n.Add(1)), 200)
				})
			})
		}
		b.Run("get/"+mode, func(b *testing.B) {
			b.ReportAllocs()
			a := start(b, options...)
			a.create()
			spread(b, 1, func(int) { a.fetch("GET", flags, "", 200) })
		})
	}
}
