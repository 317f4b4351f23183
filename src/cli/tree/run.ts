import type { Command, Option } from "../command.ts"

const metricsOptions: readonly Option[] = [
  {
    flags: "--metrics-port <PORT>",
    description: "/metrics, /livez and /readyz; 0: none (default: 8080 in a pod, else none)",
  },
  {
    flags: "--metrics-host <ADDRESS>",
    description: "where they listen (default: every address in a pod, else 127.0.0.1)",
  },
]

const logLevel: Option = {
  flags: "--log-level <LEVEL>",
  description: "debug, info, warn, error",
  default: "info",
  choices: ["debug", "info", "warn", "error"],
}

/** Commands that keep running: clusters in this process, and the controllers. */
export const run: readonly Command[] = [
  {
    name: "demo",
    group: "Run",
    summary: "watch a fleet being upgraded, a registry fail and more, on a cluster in this process",
    details: ["No Kubernetes is needed and nothing is left behind. Time runs twenty times as fast as ours."],
    arguments: [
      {
        name: "STORY",
        description: "which one (default: upgrade)",
        choices: ["upgrade", "canary", "registry-outage", "restart", "pre-pull", "in-place", "traffic"],
      },
    ],
    options: [
      { flags: "--list", description: "list the stories" },
      { flags: "--dashboard", description: "show it in a browser: begins when the page is open, stays until Ctrl-C" },
    ],
    examples: [
      { line: "demo", says: "the upgrade of a fleet, with a failure" },
      { line: "demo canary", says: "steps, an image that cannot be pulled, and a rollback" },
      { line: "demo registry-outage", says: "a registry goes down, and pods start anyway" },
      { line: "demo restart", says: "one container of each pod, in place" },
      { line: "demo pre-pull", says: "images on the nodes before a rollout" },
      { line: "demo traffic", says: "a good version earns its requests, a bad one is caught" },
      { line: "demo --dashboard", says: "the same in a browser" },
      { line: "demo --list", says: "all stories" },
    ],
    load: () => import("../commands/demo.ts"),
  },
  {
    name: "up",
    group: "Run",
    summary: "run a Kubernetes in this process, for kubectl and for aim",
    details: [
      "Our kinds are installed and our controllers run. What its nodes run is simulated: images are pulled, containers",
      "start, crash and stop as on a kubelet, but nothing is executed. docs/cluster-sim.md lists its limits.",
    ],
    options: [
      { flags: "--nodes <N>", description: "how many nodes", default: "3" },
      { flags: "--gateway", description: "serve the Gateway API, with a gateway that takes Contour's routes" },
      {
        flags: "--traffic <HOST=REQUESTS>",
        description: "clients that send so many requests a second to a host through the gateway; may be repeated",
        many: true,
      },
      {
        flags: "--load <FILE>",
        description: "manifests to begin with; may be repeated",
        many: true,
        completes: "files",
      },
      {
        flags: "--write-kubeconfig <FILE>",
        description: "where to write the kubeconfig (default: a temporary file)",
        completes: "files",
      },
      { flags: "--port <N>", description: "of the API server, on loopback; 0: any free one", default: "0" },
      {
        flags: "--user <NAME[=GROUP,...]>",
        description: "a user with a client certificate, as a context of the kubeconfig; may be repeated",
        many: true,
      },
      { flags: "--no-tls", description: "plain HTTP, where a request without credentials may do everything" },
      {
        flags: "--data <DIR>",
        description: "keep the cluster there, and continue with it next time",
        completes: "files",
      },
      {
        flags: "--registries <FILE>",
        description: "contents, speed and faults of image registries",
        completes: "files",
      },
      { flags: "--speed <X>", description: "how many times faster than real time it runs", default: "1" },
      { flags: "--dashboard", description: "show it in a browser too, where everything can be operated" },
    ],
    examples: [
      { line: "up", says: "an empty cluster, until Ctrl-C" },
      { line: "up --load fleet.yaml --data ./cluster --speed 10", says: "a fleet that is kept for the next time" },
    ],
    load: () => import("../commands/up.ts"),
  },
  {
    name: "dashboard",
    group: "Run",
    summary: "watch and operate rollouts in a browser",
    details: [
      "On loopback, with your kubeconfig: you see what you may list, and nothing can be changed without --operate.",
      "It prints an address that works once and for a minute. docs/dashboard.md explains how it is kept yours.",
      "With --in-cluster it is a server for many: each viewer's own token is passed on, and it has no rights itself.",
    ],
    connects: true,
    options: [
      { flags: "--port <N>", description: "where it listens (default: any free one)" },
      { flags: "--no-open", description: "print the address, and open no browser" },
      { flags: "--operate", description: "let the page approve, pause, resume, roll back and set images" },
      { flags: "--in-cluster", description: "run in a pod, for every viewer with a token; listens on port 8080" },
      { flags: "--host <NAME>", description: "in the cluster: the name that browsers use, with its port if unusual" },
      { flags: "--base-path <PATH>", description: "in the cluster: the path under which a proxy serves it, e.g. /aim" },
      {
        flags: "--tls-cert <FILE>",
        description: "in the cluster: serve TLS with this certificate; tokens can then be typed",
        completes: "files",
      },
      { flags: "--tls-key <FILE>", description: "in the cluster: the key of the certificate", completes: "files" },
      {
        flags: "--certificate-authority <FILE>",
        description: "in the cluster: the API server's authority (default: as aim manifests dashboard mounts it)",
        completes: "files",
      },
    ],
    examples: [
      { line: "dashboard", says: "watch" },
      { line: "dashboard --operate", says: "and change" },
      { line: "dashboard --in-cluster --host aim.example.com", says: "in a pod; aim manifests dashboard prints one" },
    ],
    load: () => import("../commands/dashboard.ts"),
  },
  {
    name: "controller",
    group: "Run",
    summary: "run the controllers, beside a cluster or inside it",
    details: [
      "Ends cleanly on the first SIGTERM or Ctrl-C: running work is finished and the Lease is released. A second one",
      "ends it at once. Any number may run; the holder of the Lease acts, the others stand by.",
    ],
    options: [
      ...metricsOptions,
      { flags: "--no-leader-elect", description: "act without a Lease; only where no other controller runs" },
      {
        flags: "--lease-namespace <NAMESPACE>",
        description: "where the Lease is kept (default: the pod's own namespace, else kube-system)",
        completes: "namespaces",
      },
      {
        flags: "--warm <BOOL>",
        description: "while another holds the Lease, keep caches in sync to take over at once; false saves memory",
        default: "true",
        choices: ["true", "false"],
      },
      { flags: "--kinds <LIST>", description: "run only the controllers of these kinds, separated by commas" },
      {
        flags: "--allow-registry <HOST:PORT>",
        description: "a registry that may be on a private address; http://HOST:PORT: without TLS; may be repeated",
        many: true,
      },
      {
        flags: "--allow-egress <NAMESPACE=HOST:PORT>",
        description:
          "a host on any address that metrics, hooks and alerts of a namespace may reach; *=: of all; may be repeated",
        many: true,
      },
      {
        flags: "--shared-namespace <NAMESPACE>",
        description: "whose MetricTemplates and AlertProviders Canaries of all others may use; may be repeated",
        many: true,
        completes: "namespaces",
      },
      {
        flags: "--allow-provider <PROVIDER>",
        description: "a provider of Canaries that is off otherwise: smi:v1alpha2 or istio; may be repeated",
        many: true,
      },
      {
        flags: "--metrics-server <URL>",
        description: "the Prometheus of Canaries that name none",
      },
      {
        flags: "--pulls-per-registry <N>",
        description: "how many pulls of ImagePullJobs may be under way at one registry, over all jobs and nodes",
        default: "20",
      },
      logLevel,
    ],
    connects: true,
    examples: [
      { line: "controller --kubeconfig ~/.kube/config", says: "from a laptop, against any cluster" },
      { line: "controller --kinds ServiceImage --metrics-port 9090", says: "one controller, with metrics" },
    ],
    load: () => import("../commands/controller.ts"),
  },
  {
    name: "agent",
    group: "Run",
    summary: "run the agent of one node: it restarts containers and pulls images that were asked for",
    details: [
      "One per node, as the DaemonSet of: aim manifests agent. It reaches the node's containers through the socket of",
      "the runtime (containerd; CRI-O is untested), keeps nothing on disk and sends no heartbeat. Where the runtime was",
      "restarted, the mounted socket is dead: the agent ends with exit code 1, and is started again with a new one.",
    ],
    options: [
      { flags: "--node-name <NAME>", description: "the node that it runs on (default: the variable NODE_NAME)" },
      {
        flags: "--cri-socket <PATH>",
        description: "the socket of the container runtime (default: containerd's)",
        completes: "files",
      },
      {
        flags: "--stops-per-minute <N>",
        description: "how many containers may be stopped on the node in any minute",
        default: "10",
      },
      {
        flags: "--pulls-per-node <N>",
        description: "how many images may be pulled on the node at once",
        default: "2",
      },
      {
        flags: "--image-gc-high-threshold <PERCENT>",
        description: "the kubelet's imageGCHighThresholdPercent: no pull may fill the disk over it",
        default: "85",
      },
      ...metricsOptions,
      logLevel,
    ],
    connects: true,
    examples: [{ line: "agent --node-name worker-1", says: "on the node itself, with a kubeconfig" }],
    load: () => import("../commands/agent.ts"),
  },
]
