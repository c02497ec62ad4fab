package rest

import (
	"envapi/core"
	"envapi/sandbox"
)

// The statuses of Readiness.
const (
	StatusReady    = "ready"
	StatusStarting = "starting" // not everything was there yet
	StatusDraining = "draining" // the service is about to stop
	StatusFailing  = "failing"  // a part that was there does not work now
)

// Readiness is the answer of /ready, for those who run the service: 200 where
// Status is StatusReady, 503 otherwise. Anybody can read it: nothing in it is
// secret.
type Readiness struct {
	Status  string           `json:"status"`
	Sandbox sandbox.Report   `json:"sandbox"`
	Keyring KeyringReadiness `json:"keyring"`
	Store   StoreReadiness   `json:"store"`
	// Draining is there once the service stops.
	Draining *DrainReadiness `json:"draining,omitempty"`
}

// DrainReadiness says what a service that stops still waits for.
type DrainReadiness struct {
	Commands int        `json:"commands"`        // those that run
	Calls    int        `json:"calls"`           // those that start or change something, uploads among them
	Until    *core.Time `json:"until,omitempty"` // when it waits no longer; absent where it does not wait
}

// KeyringReadiness says whether tokens can be verified.
type KeyringReadiness struct {
	Ready  bool       `json:"ready"`
	Since  *core.Time `json:"since,omitempty"` // since when they can be
	Detail string     `json:"detail,omitempty"`
}

// StoreReadiness says whether the store answers.
type StoreReadiness struct {
	Ready  bool   `json:"ready"`
	Detail string `json:"detail,omitempty"`
}
