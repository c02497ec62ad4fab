package proctree

// Order gives the processes below pid in the order in which they get a signal.
func Order(pid int) ([]int, error) {
	t := tree{top: pid}
	defer t.close()
	_, err := t.grow()
	return t.order, err
}
