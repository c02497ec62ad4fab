package watch

// SetMost has all subscriptions together watch at most so many directories.
func (w *Watches) SetMost(n int) { w.room.most = n }

// Watched says how many they watch.
func (w *Watches) Watched() int {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	return w.room.total
}
