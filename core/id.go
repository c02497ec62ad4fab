package core

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// The kinds of ids.
const (
	idEnvironment = "env_"
	idCommand     = "cmd_"
	idShell       = "sh_"
)

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newID gives an unguessable id: kind and 26 characters that carry 128 random
// bits.
func newID(kind string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return kind + strings.ToLower(idEncoding.EncodeToString(b[:]))
}
