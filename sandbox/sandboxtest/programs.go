package sandboxtest

import (
	"os"
	"path/filepath"
	"testing"

	"envapi/internal/require"
)

// programs: what people run still works under the system call filter. A program
// that this host does not have is not tried.
func programs(t *testing.T, tier Tier) {
	f := tier.box(t)
	for name, content := range sources {
		if err := os.WriteFile(filepath.Join(f.workspace, name), []byte(content), 0o644); err != nil { //nolint:gosec // for the box's uid to read
			t.Fatal(err)
		}
	}
	for _, p := range everyday(tier) {
		t.Run(p.name, func(t *testing.T) {
			if !p.works {
				t.Skip("it needs what this tier refuses")
			}
			if f.script("command -v "+p.needs).ExitCode != 0 {
				require.Feature(t, p.needs, "commands do not find it")
			}
			if got := f.script(p.script); got.stdout != p.want || got.ExitCode != 0 {
				t.Errorf("got %d %q (%q), want %q", got.ExitCode, got.stdout, got.stderr, p.want)
			}
		})
	}
}

// program is a script that uses a program, and what it must print.
type program struct {
	name, needs, script, want string
	works                     bool // in this tier
}

// sources are files that the scripts find in the workspace.
var sources = map[string]string{
	"main.c":  "#include <pthread.h>\n#include <stdio.h>\nstatic void *f(void *p) { puts(p); return 0; }\nint main(void) { pthread_t t; pthread_create(&t, 0, f, \"thread\"); return pthread_join(t, 0); }\n",
	"main.go": "package main\n\nfunc main() {\n\tc := make(chan int)\n\tgo func() { c <- 42 }()\n\tprintln(<-c)\n}\n",
	"loop.py": "import asyncio\nasync def main():\n    p = await asyncio.create_subprocess_exec('echo', 'child', stdout=-1)\n    print((await p.communicate())[0].decode().strip(), await asyncio.to_thread(lambda: 'thread'))\nasyncio.run(main())\n",
	"pool.py": "import multiprocessing as m\nif __name__ == '__main__':\n    a, b = m.Pipe()\n    p = m.Process(target=b.send, args=(7,))\n    p.start(); print(a.recv()); p.join()\n",
	"net.py": "import socket, threading\ns = socket.create_server(('127.0.0.1', 0))\n" +
		"threading.Thread(target=lambda: s.accept()[0].sendall(b'tcp')).start()\nprint(socket.create_connection(s.getsockname()).recv(3).decode())\n" +
		"u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0)); u.sendto(b'udp', u.getsockname()); print(u.recv(3).decode())\n" +
		"x = socket.socket(socket.AF_UNIX); x.bind('x.sock'); x.listen(); c = socket.socket(socket.AF_UNIX); c.connect('x.sock'); c.sendall(b'unix'); print(x.accept()[0].recv(4).decode())\n" +
		"print(socket.getaddrinfo('localhost', 80)[0][4][1])\n",
	"http.js": "const http = require('http');\nconst s = http.createServer((q, r) => r.end('hello')).listen(0, '127.0.0.1', () =>\n  http.get({port: s.address().port, host: '127.0.0.1'}, r => { r.on('data', d => console.log(String(d))); s.close(); }));\n",
	"child.js": "require('child_process').exec('echo child', (e, out) => process.stdout.write(out));\n" +
		"new (require('worker_threads').Worker)('require(\"worker_threads\").parentPort.postMessage(1)', {eval: true}).on('exit', c => { if (c) process.exit(c) });\n",
	"shm.py": "import multiprocessing, multiprocessing.shared_memory as m\nwith multiprocessing.Lock(): pass\na = m.SharedMemory(create=True, size=8); a.buf[0] = 5\nb = m.SharedMemory(a.name); print(b.buf[0]); b.close(); a.close(); a.unlink()\n",
}

// everyday are programs of every day, in the ways that need the most of the
// kernel.
func everyday(tier Tier) []program {
	return []program{
		{"bash: jobs and substitution", "bash", `set -m; sleep 0 & wait; diff <(echo a) <(echo a) && echo $(echo same | cat)`, "same\n", true},
		{"python: asyncio, children, threads", "python3", `python3 loop.py`, "child thread\n", true},
		{"python: multiprocessing", "python3", `python3 pool.py`, "7\n", true},
		{"python: sockets on the loopback", "python3", `python3 net.py`, "tcp\nudp\nunix\n80\n", tier.Namespaces},
		{"python: shared memory", "python3", `python3 shm.py`, "5\n", tier.Namespaces},
		{"gcc: a program with threads", "gcc", `gcc -pthread -o main-c main.c && ./main-c`, "thread\n", true},
		{"go: run", "go", `GOCACHE=$PWD/.gocache GOFLAGS=-mod=mod GO111MODULE=off go run main.go 2>&1`, "42\n", true},
		{"git: init, commit, log", "git", `git init -q r && cd r && echo x > f && git add f && git -c user.name=x -c user.email=x@x commit -q -m first && git log --format=%s`, "first\n", true},
		{"node: children and workers", "node", `node child.js`, "child\n", true},
		{"node: an HTTP server and client", "node", `node http.js`, "hello\n", tier.Namespaces},
		{"java: version", "java", `java -version 2>&1 | grep -c -i version`, "1\n", true},
		{"gdb: a child of its own", "gdb", `gcc -g -pthread -o main-g main.c && gdb -q -batch -ex 'break f' -ex run -ex 'print (char*)p' ./main-g 2>&1 | grep -o '"thread"'`, "\"thread\"\n", true},
		{"strace: a child of its own", "strace", `strace -f -e trace=write -o log sh -c 'echo hello' && grep -c '"hello' log`, "hello\n1\n", true},
		{"tar, gzip, sort, xargs", "tar", `tar czf a.tgz main.c main.go && tar tzf a.tgz | sort -r | xargs -n1 -P2 basename | sort`, "main.c\nmain.go\n", true},
		{"a terminal of its own", "script", `script -qec 'tty >/dev/null && echo terminal' /dev/null | tr -d '\r'`, "terminal\n", tier.Namespaces || !tier.Confined},
	}
}
