package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"envapi/core"
)

// sourceBound is how long what must be asked of the store may take. Whoever waits has the
// rest without it then.
const sourceBound = 2 * time.Second

// Source is what the service can be asked for. Each of its functions may be called from
// many goroutines, until the listener is closed.
type Source struct {
	Standing func(context.Context) Standing
	Census   func() core.Census
	States   func(context.Context) (map[core.EnvironmentState]int, error)
	Space    func() (core.DiskSpace, error) // of the data folder
	Reaped   func() core.Reaped
	// StoreErrors gives how often the store could not do what was asked of it, by kind.
	StoreErrors func() map[string]int64
}

// Standing is what /ready says.
type Standing struct{ Ready, Draining, Store, Keyring bool }

// states are shown with 0 where there is no environment in one, so that a sum never lacks
// a series.
var states = []core.EnvironmentState{
	core.StateActive, core.StateArchived, core.StateArchiving, core.StateRestoring, core.StateResetting, core.StateDeleting,
}

// serviceCollector asks a Source at each scrape. What cannot be told is left out; why it
// cannot is counted where it failed.
type serviceCollector struct{ Source }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("envapi_"+name, help, labels, nil)
}

var (
	descReady        = describe("ready", "1 where /ready answers 200, else 0.")
	descDraining     = describe("draining", "1 from when the service was told to stop, else 0.")
	descStoreReady   = describe("store_ready", "1 where the store answers, else 0.")
	descKeyringReady = describe("keyring_ready", "1 where tokens can be verified, else 0.")
	descEnvironments = describe("environments", "Environments of all accounts, by state.", "state")
	descBoxes        = describe("boxes", "Sandboxes that live, one for each environment in use.")
	descShells       = describe("shells_open", "Open shells.")
	descCommands     = describe("commands_running", "Commands that have not ended, with those that wait in line in shells.")
	descFreeBytes    = describe("disk_free_bytes", "What is free for everybody on the disk of the data folder.")
	descSizeBytes    = describe("disk_size_bytes", "What that disk has in all.")
	descFreeFiles    = describe("disk_free_files", "Files (inodes) that are free there; absent where it does not count them in advance.")
	descRuns         = describe("reaper_runs_total", "Runs of the reaper that came to their end.")
	descLastRun      = describe("reaper_last_run_timestamp_seconds", "When the last one did; absent before the first.")
	descEnded        = describe("reaper_ended_total", "What the reaper ended, archived or removed, by kind.", "kind")
	descFailed       = describe("reaper_failures_total", "Runs in which the reaper could not do all, by kind.", "kind")
	descStoreErrors  = describe("store_errors_total", "How often the store could not do what was asked of it, by kind.", "kind")
)

// Describe implements prometheus.Collector.
func (s serviceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descReady, descDraining, descStoreReady, descKeyringReady, descEnvironments, descBoxes, descShells, descCommands,
		descFreeBytes, descSizeBytes, descFreeFiles, descRuns, descLastRun, descEnded, descFailed, descStoreErrors,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s serviceCollector) Collect(out chan<- prometheus.Metric) {
	c := collection{out}
	s.collectStanding(c)
	s.collectUse(c)
	s.collectReaper(c)
	for kind, n := range s.StoreErrors() { // last, so that what failed above is in it
		c.counter(descStoreErrors, float64(n), kind)
	}
}

func (s serviceCollector) collectStanding(c collection) {
	ctx, cancel := context.WithTimeout(context.Background(), sourceBound)
	defer cancel()
	now := s.Standing(ctx)
	c.flag(descReady, now.Ready)
	c.flag(descDraining, now.Draining)
	c.flag(descStoreReady, now.Store)
	c.flag(descKeyringReady, now.Keyring)
}

func (s serviceCollector) collectUse(c collection) {
	ctx, cancel := context.WithTimeout(context.Background(), sourceBound)
	defer cancel()
	if counts, err := s.States(ctx); err == nil {
		for _, state := range states {
			c.gauge(descEnvironments, float64(counts[state]), string(state))
		}
	}
	live := s.Census()
	c.gauge(descBoxes, float64(live.Boxes))
	c.gauge(descShells, float64(live.Shells))
	c.gauge(descCommands, float64(live.Commands))
	if space, err := s.Space(); err == nil {
		c.gauge(descFreeBytes, float64(space.Free.Bytes))
		c.gauge(descSizeBytes, float64(space.Total.Bytes))
		if space.Total.Files > 0 {
			c.gauge(descFreeFiles, float64(space.Free.Files))
		}
	}
}

func (s serviceCollector) collectReaper(c collection) {
	did := s.Reaped()
	c.counter(descRuns, float64(did.Runs))
	if !did.LastRun.IsZero() {
		c.gauge(descLastRun, float64(did.LastRun.UnixMilli())/1000)
	}
	for kind, n := range did.Ended {
		c.counter(descEnded, float64(n), kind)
	}
	for kind, n := range did.Failed {
		c.counter(descFailed, float64(n), kind)
	}
}

// collection is where the metrics of a scrape go.
type collection struct{ out chan<- prometheus.Metric }

func (c collection) gauge(d *prometheus.Desc, v float64, labels ...string) {
	c.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (c collection) counter(d *prometheus.Desc, v float64, labels ...string) {
	c.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func (c collection) flag(d *prometheus.Desc, on bool) {
	v := 0.0
	if on {
		v = 1
	}
	c.gauge(d, v)
}
