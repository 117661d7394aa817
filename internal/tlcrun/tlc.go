package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The release that is downloaded when TLA2TOOLS_JAR names none.
const (
	jarURL    = "https://github.com/tlaplus/tlaplus/releases/download/v1.7.4/tla2tools.jar"
	jarSHA256 = "936a262061c914694dfd669a543be24573c45d5aa0ff20a8b96b23d01e050e88"
)

// findJar returns the jar that TLA2TOOLS_JAR names, or the released one, which is downloaded once into
// the user's cache and checked against its SHA-256 every time.
func findJar(ctx context.Context) (string, error) {
	if jar := os.Getenv("TLA2TOOLS_JAR"); jar != "" {
		if _, err := os.Stat(jar); err != nil {
			return "", fmt.Errorf("TLA2TOOLS_JAR: %w", err)
		}
		return filepath.Abs(jar)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("set TLA2TOOLS_JAR to a tla2tools.jar: %w", err)
	}
	path := filepath.Join(dir, "linearize", "tla2tools-v1.7.4.jar")
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		content, err = download(ctx)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
	}
	if err != nil {
		return "", fmt.Errorf("no TLC: TLA2TOOLS_JAR is not set, and the released v1.7.4 jar "+
			"cannot be had: %w", err)
	}
	if err := verify(content); err != nil {
		return "", fmt.Errorf("%s: %w; remove it, or set TLA2TOOLS_JAR", path, err)
	}
	return path, nil
}

func download(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, jarURL, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", jarURL, response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", jarURL, err)
	}
	return content, verify(content)
}

func verify(content []byte) error {
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != jarSHA256 {
		return fmt.Errorf("SHA-256 is %s, not %s", got, jarSHA256)
	}
	return nil
}

// checker runs TLC.
type checker struct {
	jar     string
	heap    string
	workers int
}

// outcome is what TLC printed about one run.
type outcome struct {
	version   string
	violated  string // the invariant, "a temporal property", or nothing
	trace     int    // states of the counterexample
	distinct  int64
	generated int64
	depth     int
	actions   map[string]int64
}

// run checks spec.tla in the current folder with the given configuration text.
func (tlc checker) run(ctx context.Context, name, config string) (outcome, error) {
	dir, err := os.MkdirTemp("", "tlc")
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.cfg")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return outcome{}, err
	}
	// Most models are small: a Java that starts fast beats one that optimizes. TLC unpacks its standard
	// modules into the temporary folder; two TLCs must not share it.
	command := exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Xmx"+tlc.heap, "-Djava.io.tmpdir="+dir, "-cp", tlc.jar, "tlc2.TLC",
		"-workers", strconv.Itoa(tlc.workers), "-coverage", "600", "-metadir", dir, "-config", path, "spec.tla")
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	err = command.Run() // not zero when something is violated, too
	o, ok := parse(printed.String())
	if !ok {
		return outcome{}, fmt.Errorf("%s: TLC did not finish (%w):\n%s", name, err, tail(printed.String()))
	}
	return o, nil
}

var (
	versionLine   = regexp.MustCompile(`(?m)^(TLC2 Version .*)$`)
	invariantLine = regexp.MustCompile(`(?m)^Error: Invariant (\w+) is violated`)
	temporalLine  = regexp.MustCompile(`(?m)^Error: Temporal properties were violated`)
	stateLine     = regexp.MustCompile(`(?m)^State \d+:`)
	countsLine    = regexp.MustCompile(`(?m)^(\d+) states generated, (\d+) distinct states found, \d+ states left`)
	depthLine     = regexp.MustCompile(`(?m)^The depth of the complete state graph search is (\d+)\.`)
	actionLine    = regexp.MustCompile(`(?m)^<(\w+) line [^>]*>: (\d+):(\d+)$`)
	finishedLine  = regexp.MustCompile(`(?m)^Finished in `)
	passedLine    = regexp.MustCompile(`(?m)^Model checking completed. No error has been found`)
)

// parse reads what TLC printed; false means that it neither completed nor found a violation.
func parse(text string) (outcome, bool) {
	var o outcome
	if m := versionLine.FindStringSubmatch(text); m != nil {
		o.version = m[1]
	}
	if m := invariantLine.FindStringSubmatch(text); m != nil {
		o.violated = m[1]
	} else if temporalLine.MatchString(text) {
		o.violated = "a temporal property"
	}
	o.trace = len(stateLine.FindAllString(text, -1))
	if all := countsLine.FindAllStringSubmatch(text, -1); all != nil {
		last := all[len(all)-1]
		o.generated, _ = strconv.ParseInt(last[1], 10, 64)
		o.distinct, _ = strconv.ParseInt(last[2], 10, 64)
	}
	if m := depthLine.FindStringSubmatch(text); m != nil {
		o.depth, _ = strconv.Atoi(m[1])
	}
	o.actions = map[string]int64{}
	// Coverage is printed once more at each interval; the last count of an action is the final one.
	for _, m := range actionLine.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseInt(m[3], 10, 64)
		if n > 0 && m[1] != "Init" {
			o.actions[m[1]] = n
		}
	}
	complete := passedLine.MatchString(text) || o.violated != ""
	return o, complete && finishedLine.MatchString(text)
}

// tail is the last lines of a text, for an error.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
