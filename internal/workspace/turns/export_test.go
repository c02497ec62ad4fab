package turns

// Lines counts the accounts that are remembered.
func Lines(t *Turns) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.of)
}
