package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Binary returns the path of the tailwater command: TAILWATER_BIN if it is
// set, else one that is built now, once for each test process. It is stored
// in the checkout's ignored .cache, by a rename, so that packages that are
// tested at the same time can share it.
func Binary(t T) string {
	t.Helper()
	if bin := os.Getenv("TAILWATER_BIN"); bin != "" {
		return bin
	}
	bin, err := buildBinary()
	if err != nil {
		t.Fatalf("build tailwater: %v", err)
	}
	return bin
}

var buildBinary = sync.OnceValues(func() (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", "test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "tailwater")
	tmp := fmt.Sprintf("%s.%d", bin, os.Getpid())
	cmd := exec.Command("go", "build", "-trimpath", "-o", tmp, "./cmd/tailwater")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/tailwater: %w\n%s", err, out)
	}
	return bin, os.Rename(tmp, bin)
})

// ModuleRoot returns the directory of go.mod.
func ModuleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("not inside a Go module")
	}
	return filepath.Dir(mod), nil
}
