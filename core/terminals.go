package core

import "sync"

// holdTerminal counts a terminal of an account, of which the kernel has few for all;
// who holds one must call release, once or more. It fails with `rate_limited`.
func (s *Service) holdTerminal(account string) (release func(), err error) {
	most := s.Limits.TerminalsPerAccount
	if !s.terminals.add(account, most) {
		return nil, Errorf(CodeRateLimited, "cannot open another terminal: the account has %d open, which is the most; close shells with close_shell, or end commands that have a tty with signal_command", most).
			With("retry_after_ms", retryAfter.Milliseconds())
	}
	return sync.OnceFunc(func() { s.terminals.leave(account) }), nil
}

// keepsTerminal has a terminal released when what has it is forgotten.
type keepsTerminal struct{ release func() }

// hold counts the terminal.
func (k *keepsTerminal) hold(s *Service, account string) (err error) {
	k.release, err = s.holdTerminal(account)
	return err
}

// letGo releases it, where there is one.
func (k *keepsTerminal) letGo() {
	if k.release != nil {
		k.release()
	}
}
