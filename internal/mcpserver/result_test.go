package mcpserver

import "testing"

// Assistants read the text: what is in it must be what the structured content says.
func TestFactsAreReadAsTheyStandInTheStructuredContent(t *testing.T) {
	got := sentence(map[string]any{
		"matches": []map[string]any{{"line": 4, "text": "   x < 2"}}, "etag": nil, "limit": "shells", "used": int64(3),
	})
	if want := `etag: null, limit: shells, matches: [{"line":4,"text":"   x < 2"}], used: 3`; got != want {
		t.Errorf("got %s", got)
	}
}
