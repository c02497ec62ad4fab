package app

import (
	"slices"
	"strings"
	"testing"

	"envapi/core"
)

// What --dev prints must let its reader try every operation, as another account too.
func TestDevNamesEveryScope(t *testing.T) {
	var text strings.Builder
	(&dev{url: "http://127.0.0.1:1", tokenFile: "/data/dev-token"}).print(&text, "http://127.0.0.1:8008")
	_, line, found := strings.Cut(text.String(), `{"sub":"bob","scope":"`)
	scopes, _, _ := strings.Cut(line, `"`)
	if !found {
		t.Fatalf("there is no line for another account:\n%s", text.String())
	}
	given := strings.Fields(scopes)
	for _, scope := range core.AllScopes {
		if !slices.Contains(given, string(scope)) {
			t.Errorf("the token for another account lacks %s", scope)
		}
	}
}
