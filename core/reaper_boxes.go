package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// rest is since when nothing lives in a box, as far as the reaper has seen.
type rest struct {
	since time.Duration // by the steady clock
	uses  int64         // of the box, then: another number says that something lived meanwhile
}

// letBoxesGo closes the boxes in which nothing has lived for as long as they are kept.
func (r *reaper) letBoxesGo(ctx context.Context) (count int, err error) {
	s := r.service
	seen := map[*opening]rest{}
	defer func() { r.boxes = seen }() // those that are gone are forgotten
	for _, p := range s.boxedPlaces() {
		o := p.live()
		if o == nil {
			continue
		}
		now := rest{s.steady(), o.taken()} // before it is looked: who comes after that is counted
		if !s.isVacant(ctx, p.id, o) {
			continue
		}
		if before, ok := r.boxes[o]; ok && before.uses == now.uses {
			now.since = before.since
		}
		if s.steady()-now.since < s.Retention.Box || ctx.Err() != nil || count == mostEnded {
			seen[o] = now
			continue
		}
		gone, failed := s.letBoxGo(p.id, o, now.uses)
		if failed != nil {
			err = errors.Join(err, failed)
			seen[o] = now // and tried again: nobody can use it any more
		}
		if gone {
			s.Log.Info("a sandbox is let go, since nothing has lived in it for as long as it is kept", "environment", p.id, "after", s.steady()-now.since)
			count++
		}
	}
	return count, err
}

// boxedPlaces gives the places that have a box.
func (s *Service) boxedPlaces() []*place {
	s.mu.Lock()
	defer s.mu.Unlock()
	var places []*place
	for _, p := range s.places {
		if p.box() != nil {
			places = append(places, p)
		}
	}
	return places
}

// isVacant says whether nothing lives in a box. Where it does not say so, something
// does.
func (s *Service) isVacant(ctx context.Context, id string, o *opening) bool {
	if len(s.runsIn(id)) > 0 || len(s.shellsIn(id)) > 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, usageBound)
	defer cancel()
	now, err := o.box.Usage(ctx)
	return err == nil && now.Processes == 0
}

// letBoxGo closes a box in which nothing lived after so many uses, unless somebody has
// come since: who comes later gets the next box, when this one is gone.
func (s *Service) letBoxGo(id string, o *opening, uses int64) (bool, error) {
	p := s.hold(id)
	defer s.letGo(p) // forgets the place where this was all that held it
	if !o.retire(uses) {
		return false, nil
	}
	if err := o.box.Close(); err != nil {
		return false, fmt.Errorf("cannot close the box of %s, in which nothing lives: %w", id, err)
	}
	return true, nil
}
