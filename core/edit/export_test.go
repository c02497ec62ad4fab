package edit

// OneHunk is what Diff makes of contents with very many lines.
func OneHunk(path string, before, after []byte, limit int) string {
	return string(oneHunk("a/"+path, "b/"+path, before, after, limit))
}
