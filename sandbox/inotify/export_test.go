package inotify

// Pending says how many watches there are.
func (w *Watcher) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watches)
}
