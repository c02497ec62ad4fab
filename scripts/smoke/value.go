package main

import (
	"crypto/rand"
	"fmt"
)

// text gives the value at a path of names as text, "" where there is none.
func text(o object, path ...string) string {
	var value any = o
	for _, name := range path {
		inner, _ := value.(object)
		value = inner[name]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// nonce is fresh at every call.
func nonce() string { return rand.Text() }
