package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tailwater/tailwater/config"
)

// These tests check docker-compose.yml, what it mounts, and the Dockerfile, as far
// as a machine without a container engine can.
const root = "../.."

// compose is the part of the compose specification that our file uses; the
// decoder refuses anything else, so a misspelt key is found.
type compose struct {
	Services map[string]struct {
		Image       string            `yaml:"image"`
		Build       string            `yaml:"build"`
		Command     []string          `yaml:"command"`
		Environment map[string]string `yaml:"environment"`
		Ports       []string          `yaml:"ports"`
		Volumes     []string          `yaml:"volumes"`
		Restart     string            `yaml:"restart"`
		StopGrace   string            `yaml:"stop_grace_period"`
		Healthcheck *struct {
			Test     []string `yaml:"test"`
			Interval string   `yaml:"interval"`
			Retries  int      `yaml:"retries"`
		} `yaml:"healthcheck"`
		DependsOn map[string]struct {
			Condition string `yaml:"condition"`
		} `yaml:"depends_on"`
	} `yaml:"services"`
	Volumes map[string]*struct{} `yaml:"volumes"`
}

func readCompose(t *testing.T) compose {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComposeFile(t *testing.T) {
	c := readCompose(t)
	for _, name := range []string{"postgres", "elasticsearch", "redis", "tailwater"} {
		if _, ok := c.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
	for name, s := range c.Services {
		if (s.Image == "") == (s.Build == "") {
			t.Errorf("%s has both or neither of image and build", name)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s beyond this machine", name, p)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, ".") {
				if _, err := os.Stat(filepath.Join(root, from)); err != nil {
					t.Errorf("%s mounts %v", name, err)
				}
			} else if _, declared := c.Volumes[from]; !declared {
				t.Errorf("%s uses the volume %s, which is not declared", name, from)
			}
		}
		for other, d := range s.DependsOn {
			if o, ok := c.Services[other]; !ok || d.Condition == "service_healthy" && o.Healthcheck == nil {
				t.Errorf("%s waits for %s, which cannot become healthy", name, other)
			}
		}
	}
}

// The plugin knows the whole specification; where it is there it is asked too.
func TestComposePlugin(t *testing.T) {
	if exec.Command("docker", "compose", "version").Run() != nil {
		t.Log("no docker compose here: the file was only checked by TestComposeFile")
		return
	}
	cmd := exec.Command("docker", "compose", "config", "--quiet")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("docker compose config: %v\n%s", err, out)
	}
}

// The mounted configuration loads with the service's own environment.
func TestComposeConfig(t *testing.T) {
	env := readCompose(t).Services["tailwater"].Environment
	cfg, err := config.Load(filepath.Join(root, "deploy/compose/tailwater.yaml"), func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Views) != 1 || len(cfg.Sinks) != 3 {
		t.Errorf("%d views, %d sinks", len(cfg.Views), len(cfg.Sinks))
	}
}

// The Dockerfile's build command works here, and its result is static and runs.
func TestDockerfileBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the binary: not with -short")
	}
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^RUN (.*go build .*) -o (\S+) (.*)$`).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("the Dockerfile has no RUN ... go build ... -o FILE")
	}
	bin := filepath.Join(t.TempDir(), "tailwater")
	cmd := exec.Command("sh", "-c", m[1]+" -o "+bin+" "+m[3])
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "VERSION=v0-of-the-test")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", m[0], err, out)
	}
	out, err := exec.Command(bin, "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v0-of-the-test") {
		t.Errorf("tailwater version = %q, %v", out, err)
	}
}

// Everything the Dockerfile copies into the last stage comes from the first,
// and it does not end as root.
func TestDockerfileStages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(text), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage is not FROM scratch")
	}
	for line := range strings.Lines(last) {
		if strings.HasPrefix(line, "COPY ") && !strings.HasPrefix(line, "COPY --from=build ") {
			t.Errorf("the last stage copies from the context: %s", line)
		}
	}
	if !regexp.MustCompile(`(?m)^USER [1-9][0-9]*:[1-9][0-9]*$`).MatchString(last) {
		t.Error("the last stage has no numeric USER other than root")
	}
}
