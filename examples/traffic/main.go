// A small web server that a Canary can judge: it answers with its version, fails and delays as its environment says, and
// counts what it answered for Prometheus.
//
//	VERSION        what it answers with ("unknown")
//	ERROR_RATE     which share of requests it answers with 500: 0 to 1 (0)
//	LATENCY        how long an answer takes, such as 300ms (0s)
//	START_DELAY    how long after its start it is ready (0s)
//	CRASH_AFTER    ends with code 1 this long after its start (never)
//	DRAIN          how long it goes on after SIGTERM, and asks clients to connect elsewhere (2s)
//	PORT           where it listens (8080)
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Seconds; an answer that takes longer is in +Inf alone.
var buckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

type labels struct {
	method string
	status int
}

type series struct {
	counts []uint64 // by bucket, not cumulative; the last one is +Inf
	sum    float64
	total  uint64
}

type counters struct {
	sync.Mutex
	answered map[labels]*series
}

func (c *counters) add(of labels, took time.Duration) {
	seconds := took.Seconds()
	index, _ := slices.BinarySearch(buckets, seconds)
	c.Lock()
	defer c.Unlock()
	known := c.answered[of]
	if known == nil {
		known = &series{counts: make([]uint64, len(buckets)+1)}
		c.answered[of] = known
	}
	known.counts[index]++
	known.sum += seconds
	known.total++
}

// The text format of Prometheus.
func (c *counters) String() string {
	c.Lock()
	defer c.Unlock()
	var requests, durations strings.Builder
	for of, known := range c.answered {
		names := fmt.Sprintf(`method="%s",status="%d"`, of.method, of.status)
		fmt.Fprintf(&requests, "http_requests_total{%s} %d\n", names, known.total)
		var below uint64
		for index, count := range known.counts {
			below += count
			bound := "+Inf"
			if index < len(buckets) {
				bound = strconv.FormatFloat(buckets[index], 'g', -1, 64)
			}
			fmt.Fprintf(&durations, "http_request_duration_seconds_bucket{%s,le=\"%s\"} %d\n", names, bound, below)
		}
		fmt.Fprintf(&durations, "http_request_duration_seconds_sum{%s} %g\n", names, known.sum)
		fmt.Fprintf(&durations, "http_request_duration_seconds_count{%s} %d\n", names, known.total)
	}
	return "# HELP http_requests_total Requests that were answered.\n# TYPE http_requests_total counter\n" +
		requests.String() +
		"# HELP http_request_duration_seconds How long the answers took.\n# TYPE http_request_duration_seconds histogram\n" +
		durations.String()
}

func main() {
	started := time.Now()
	version := setting("VERSION", "unknown")
	errorRate, err := strconv.ParseFloat(setting("ERROR_RATE", "0"), 64)
	if err != nil || errorRate < 0 || errorRate > 1 {
		log.Fatalf("ERROR_RATE must be a number from 0 to 1, not %s", os.Getenv("ERROR_RATE"))
	}
	latency, startDelay, drain := duration("LATENCY", 0), duration("START_DELAY", 0), duration("DRAIN", 2*time.Second)
	if crashAfter := duration("CRASH_AFTER", 0); crashAfter > 0 {
		time.AfterFunc(crashAfter, func() { log.Fatal("ends, as CRASH_AFTER says") })
	}
	pod, _ := os.Hostname()
	var asked atomic.Uint64
	var isEnding atomic.Bool
	counted := &counters{answered: map[labels]*series{}}

	serve := func(answer http.ResponseWriter, request *http.Request) {
		began := time.Now()
		// A client that keeps its connection learns here that it must open another one, before this one is closed.
		if isEnding.Load() {
			answer.Header().Set("Connection", "close")
		}
		time.Sleep(latency)
		// Spread evenly and without chance: of n requests, exactly the share that was asked for fails.
		number := asked.Add(1)
		status := http.StatusOK
		if uint64(float64(number)*errorRate) > uint64(float64(number-1)*errorRate) {
			status = http.StatusInternalServerError
		}
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(status)
		fmt.Fprintf(answer, "{\"version\":%q,\"pod\":%q}\n", version, pod)
		counted.add(labels{request.Method, status}, time.Since(began))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", serve)
	mux.HandleFunc("/metrics", func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(answer, counted)
	})
	mux.HandleFunc("/readyz", func(answer http.ResponseWriter, _ *http.Request) {
		if time.Since(started) < startDelay {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	})

	// A proxy opens connections for requests that another one then carries, and keeps them; Envoy for an hour. A server
	// that closes them first does so under a request that is on its way, now and then, and the proxy answers with 503.
	server := &http.Server{Addr: ":" + setting("PORT", "8080"), Handler: mux, ReadHeaderTimeout: 2 * time.Hour}
	stopped := make(chan struct{})
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		<-signals
		isEnding.Store(true)
		time.Sleep(drain)
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(limit)
		close(stopped)
	}()
	log.Printf("%s serves version %s", pod, version)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
	<-stopped
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func duration(name string, otherwise time.Duration) time.Duration {
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	parsed, err := time.ParseDuration(value)
	if err != nil || parsed < 0 {
		log.Fatalf("%s must be a duration such as 300ms, not %s", name, value)
	}
	return parsed
}
