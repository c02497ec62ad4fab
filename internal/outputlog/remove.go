package outputlog

import "errors"

// Remove removes the log of a command or shell that has ended.
func (ls *Logs) Remove(string, string) error { return errors.New("being built") }

// Bytes gives what the logs of each environment take on disk.
func (ls *Logs) Bytes() (map[string]int64, error) { return nil, errors.New("being built") }
