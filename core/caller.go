package core

import (
	"slices"
	"time"
)

// Scope is a permission that a token carries.
type Scope string

// The scopes, as contract and tokens name them.
const (
	ScopeEnvironmentsRead  Scope = "environments:read"
	ScopeEnvironmentsWrite Scope = "environments:write"
	ScopeExec              Scope = "exec"
	ScopeFilesRead         Scope = "files:read"
	ScopeFilesWrite        Scope = "files:write"
)

// AllScopes is what a local caller without a token holds.
var AllScopes = []Scope{ScopeEnvironmentsRead, ScopeEnvironmentsWrite, ScopeExec, ScopeFilesRead, ScopeFilesWrite}

// Owner is whom a thing belongs to: quotas count per owner, and one owner never
// sees what is another's.
type Owner struct {
	Account string // the token's sub
	Profile string // its profile claim, "default" if absent
}

// Caller is who asks.
type Caller struct {
	Owner
	Scopes []Scope
	Local  bool // the local stdio user: environment_id may be left out
	// Until is when the token is no longer accepted anywhere, the skew of clocks
	// included; zero is never. Streams end then, see Service.Stream.
	Until time.Time
}

// LocalCaller is the user of envapi-mcp over stdio.
func LocalCaller() Caller {
	return Caller{Owner: Owner{Account: "local", Profile: "default"}, Scopes: AllScopes, Local: true}
}

// Require fails with `insufficient_scope` unless the caller holds scope.
func (c Caller) Require(scope Scope) error {
	if slices.Contains(c.Scopes, scope) {
		return nil
	}
	return Errorf(CodeInsufficientScope, "the token lacks the scope %q: ask keyring for one that has it", scope).
		With("scope", string(scope))
}
