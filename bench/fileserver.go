package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// serveVariable makes this program a plain file server of the folder that it names:
// in a process of its own, as the service is.
const serveVariable = "ENVAPI_BENCH_SERVE"

// serveFiles says its address and serves until it is killed.
func serveFiles(dir string) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(l.Addr())
		server := http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: time.Minute}
		err = server.Serve(l)
	}
	fmt.Fprintln(os.Stderr, "bench: cannot serve:", err)
	os.Exit(1)
}

// fileServer is such a process.
type fileServer struct {
	cmd *exec.Cmd
	url string
}

func startFileServer(ctx context.Context, dir string) (*fileServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), serveVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &fileServer{cmd: cmd}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("cannot start a plain file server: %w", err)
	}
	s.url = "http://" + strings.TrimSpace(address)
	return s, nil
}

func (s *fileServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
