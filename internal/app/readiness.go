package app

import (
	"envapi/core"
	"envapi/internal/keyring"
	"envapi/internal/rest"
)

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
