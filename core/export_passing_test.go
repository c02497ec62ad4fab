package core

// Users gives how many hold the place of an environment.
func (s *Service) Users(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.places[id]; p != nil {
		return p.users
	}
	return 0
}
