package supervisor

// DefaultPath is the PATH of commands where the deployment names none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"

// Environ gives the variables that every command finds; a caller's own win.
// Nothing of the service's environment is among them.
func Environ(path, home, tmp string) map[string]string {
	if path == "" {
		path = DefaultPath
	}
	return map[string]string{
		"PATH":   path,
		"HOME":   home,
		"TMPDIR": tmp,
		"USER":   "user", "LOGNAME": "user", "SHELL": "/bin/bash",
		"LANG": "C.UTF-8", "TERM": "dumb",
		// A pager would wait for keys that nobody presses.
		"PAGER": "cat", "GIT_PAGER": "cat",
		// Where Landlock forbids git to read it, git would give up.
		"GIT_CONFIG_NOSYSTEM": "1",
	}
}

// unset is what no variable can be: it takes one away.
const unset = "\x00"

var (
	// onTerminal is what differs for a command that has a terminal. Pagers stay
	// off: who asked for a terminal did not ask for one.
	onTerminal = map[string]string{"TERM": "xterm-256color"}
	// forPeople is what differs in a shell for people, who press keys.
	forPeople = map[string]string{"TERM": "xterm-256color", "PAGER": unset, "GIT_PAGER": unset}
)

// environ gives an environment, of what is more particular in each of the layers
// than in those before, and the PATH in it.
func (b *Box) environ(layers ...map[string]string) (env []string, path string) {
	all := make(map[string]string, len(b.options.Env)+4)
	for _, variables := range append([]map[string]string{b.options.Env}, layers...) {
		for name, value := range variables {
			all[name] = value
		}
	}
	for name, value := range all {
		if value != unset {
			env = append(env, name+"="+value)
		}
	}
	return env, all["PATH"]
}
