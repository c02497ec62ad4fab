package app

import (
	"context"

	"envapi/internal/metrics"
)

// openMetrics opens the listener for metrics, where the deployment wants one. It is there
// until everything else has ended.
func (s *HTTP) openMetrics(ctx context.Context, c Setup) error {
	if c.MetricsAddr == "" {
		return nil
	}
	l, err := metrics.Listen(ctx, metrics.Config{Addr: c.MetricsAddr, Version: Version(), Log: c.Log})
	if err != nil {
		return err
	}
	s.closeLater(l.Close)
	c.Log.Info("metrics are shown", "address", l.Addr)
	return nil
}
