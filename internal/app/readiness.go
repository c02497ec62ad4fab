package app

import (
	"envapi/core"
	"envapi/internal/keyring"
	"envapi/internal/rest"
)

// drainReadiness says what a service that stops still waits for, nil for one that does
// not stop.
func drainReadiness(s *core.Service) *rest.DrainReadiness {
	left, draining := s.Draining()
	if !draining {
		return nil
	}
	r := &rest.DrainReadiness{Commands: left.Commands, Calls: left.Calls}
	if !left.Until.IsZero() {
		until := core.At(left.Until)
		r.Until = &until
	}
	return r
}

// keyringReadiness says to anybody whether tokens can be verified.
func keyringReadiness(s keyring.Status) rest.KeyringReadiness {
	r := rest.KeyringReadiness{Ready: s.Verifies, Detail: s.LastError}
	if s.Verifies {
		since := core.At(s.Since)
		r.Since = &since
	} else if r.Detail == "" {
		r.Detail = "the keys are being fetched"
	}
	return r
}
