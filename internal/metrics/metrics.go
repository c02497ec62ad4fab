// Package metrics shows how the service does, in the form of Prometheus, on a listener
// of its own.
//
// It asks for no token, so it says nothing of accounts, environments or commands: only
// numbers of all of them together, under labels whose values are known in advance. Not
// protected: these numbers, from whoever can reach the address. Who listens on more than
// a loopback address lets that network read them.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// registry gives the metrics of a service of a version, whatever else they are of.
func registry(version string, source Source) *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "envapi_build_info", Help: "Always 1; the label says which version serves.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(
		build,
		serviceCollector{source},
		collectors.NewBuildInfoCollector(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}
