package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"envapi/core"
)

func TestAStreamEndsWithItsTokenOrItsService(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Time
		end   func(*core.Service)
		want  error
	}{
		"token":           {time.Now().Add(10 * time.Millisecond), func(*core.Service) {}, core.ErrTokenExpired},
		"token long past": {time.Now().Add(-time.Hour), func(*core.Service) {}, core.ErrTokenExpired},
		"service":         {time.Now().Add(time.Hour), func(s *core.Service) { _ = s.Close() }, core.ErrStopping},
		"service, local":  {time.Time{}, func(s *core.Service) { _ = s.Close() }, core.ErrStopping},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(t).Service
			ctx, cancel := s.Stream(t.Context(), core.Caller{Until: c.until})
			defer cancel()
			c.end(s)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the stream goes on")
			}
			if got := context.Cause(ctx); !errors.Is(got, c.want) {
				t.Errorf("it ended with %v, want %v", got, c.want)
			}
		})
	}
}

func TestAStreamOfNobodyIsForgotten(t *testing.T) {
	ctx, cancel := newWorld(t).Stream(t.Context(), alice)
	cancel()
	<-ctx.Done()
	if got := context.Cause(ctx); !errors.Is(got, context.Canceled) {
		t.Errorf("it ended with %v", got)
	}
}
