package app

import (
	"context"

	"envapi/internal/metrics"
	"envapi/internal/rest"
	"envapi/internal/store"
)

// openMetrics opens the listener for metrics, where the deployment wants one. It is
// there until the service has ended what it did.
func (s *HTTP) openMetrics(ctx context.Context, c Setup) error {
	if c.MetricsAddr == "" {
		return nil
	}
	l, err := metrics.Listen(ctx, metrics.Config{
		Addr: c.MetricsAddr, Version: Version(), Log: c.Log,
		Source: metrics.Source{
			Standing: s.standing, Census: s.service.Census, States: s.store.CountStates,
			Space: s.service.Workspaces.Space, Reaped: s.service.Reaped, StoreErrors: store.Failures,
		},
	})
	if err != nil {
		return err
	}
	s.closeLater(l.Close)
	c.Log.Info("metrics are shown", "address", l.Addr)
	return nil
}

// standing is what metrics show of /ready.
func (s *HTTP) standing(ctx context.Context) metrics.Standing {
	r := s.ready(ctx)
	return metrics.Standing{
		Ready: r.Status == rest.StatusReady, Draining: r.Status == rest.StatusDraining,
		Store: r.Store.Ready, Keyring: r.Keyring.Ready,
	}
}
