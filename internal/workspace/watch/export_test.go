package watch

import "envapi/core"

// Full says whether events are lost because nobody fetches those that wait.
func Full(one core.FileWatch) bool { return one.(*watch).queue.full() } //nolint:forcetypeassert // nothing else is one

// SetMostDirectories and SetMostWatches set bounds, and give what puts them back.
func SetMostDirectories(n int) (restore func()) {
	before := mostDirectories
	mostDirectories = n
	return func() { mostDirectories = before }
}

func SetMostWatches(n int) (restore func()) {
	before := mostWatches
	mostWatches = n
	return func() { mostWatches = before }
}

// SetMost has all subscriptions together watch at most so many directories.
func (w *Watches) SetMost(n int) { w.room.most = n }

// Watched says how many they watch.
func (w *Watches) Watched() int {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	return w.room.total
}
