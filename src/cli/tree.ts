import type { Command, Option } from "./command.ts"
import { defaultNamespace } from "./manifests/names.ts"

const output = (...choices: string[]): Option => ({
  flags: "-o, --output <FORMAT>",
  description: choices.join(", "),
  choices,
})

/** Every command, in the order of `aim --help`. Nothing is loaded before it is run: `aim --version` stays fast. */
export const commands: readonly Command[] = [
  {
    name: "demo",
    group: "Run",
    summary: "watch a fleet being upgraded, on a cluster in this process",
    details: ["No Kubernetes is needed and nothing is left behind. Time runs twenty times as fast as ours."],
    arguments: [{ name: "STORY", description: "which one (default: upgrade)" }],
    options: [{ flags: "--list", description: "the stories there are" }],
    examples: [
      { line: "demo", says: "the upgrade of a fleet, with a mishap" },
      { line: "demo --list", says: "what else there is to see" },
    ],
    load: () => import("./commands/demo.ts"),
  },
  {
    name: "up",
    group: "Run",
    summary: "run a Kubernetes in this process, for kubectl and for aim",
    details: [
      "Our kinds are installed and our controllers run. What its nodes run is simulated: images are pulled, containers",
      "start, crash and stop as on a kubelet, but nothing is executed. docs/cluster-sim.md says what it does not do.",
    ],
    options: [
      { flags: "--nodes <N>", description: "how many nodes", default: "3" },
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
      { flags: "--data <DIR>", description: "keep the cluster there, and go on from it next time", completes: "files" },
      {
        flags: "--registries <FILE>",
        description: "contents, speed and faults of image registries",
        completes: "files",
      },
      { flags: "--speed <X>", description: "how many times as fast as ours its time runs", default: "1" },
    ],
    examples: [
      { line: "up", says: "an empty cluster, until Ctrl-C" },
      { line: "up --load fleet.yaml --data ./cluster --speed 10", says: "a fleet that is there again tomorrow" },
    ],
    load: () => import("./commands/up.ts"),
  },
  {
    name: "get",
    group: "See",
    summary: "list rollouts, one line each",
    arguments: [
      {
        name: "KIND[/NAME]",
        description: "si, si/NAME or si NAME (default: si, every ServiceImage)",
        many: true,
        completes: "serviceimages",
      },
    ],
    options: [output("wide", "name", "json", "yaml")],
    connects: true,
    examples: [
      { line: "get", says: "every ServiceImage and how far it is" },
      { line: "get si/dicom-serviceimage-prod -o yaml", says: "one, whole" },
    ],
    load: () => import("./commands/get.ts"),
  },
  {
    name: "status",
    group: "See",
    summary: "show where each rollout stands, tier by tier",
    details: [
      "On a terminal a bar per tier: done, under way, to do. Elsewhere the same facts as plain lines.",
      "With --watch the picture is kept up to date until Ctrl-C; when stdout is no terminal, a line is added per change.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description: "which rollouts (default: all)",
        many: true,
        completes: "serviceimages",
      },
    ],
    options: [{ flags: "-w, --watch", description: "keep watching" }, output("wide", "name", "json", "yaml")],
    connects: true,
    examples: [
      { line: "status", says: "all rollouts, now" },
      { line: "status si/dicom-serviceimage-prod -w", says: "one of them, live" },
    ],
    load: () => import("./commands/status.ts"),
  },
  {
    name: "wait",
    group: "See",
    summary: "return when a rollout is complete, fail when it is not going to be",
    details: [
      "Done (0) when Complete is true for the generation that was last written, never for an earlier one.",
      "Failed (1) when the rollout is halted or stalled, is deleted, or the time is up. It watches; it does not poll.",
    ],
    arguments: [
      { name: "si/NAME", description: "which rollouts", required: true, many: true, completes: "serviceimages" },
    ],
    options: [
      {
        flags: "--timeout <DURATION>",
        description: "how long: 90s, 10m, 1h30m; 0 looks once",
        default: "10m",
      },
    ],
    connects: true,
    examples: [{ line: "wait si/dicom-serviceimage-prod --timeout 30m", says: "for a pipeline's last step" }],
    load: () => import("./commands/wait.ts"),
  },
  {
    name: "grant",
    group: "Operate",
    summary: "let the controllers change the workloads of a namespace",
    details: [
      "The controllers read everywhere and may change nothing until someone who may do so binds the ClusterRole",
      "aim-target to their account, namespace by namespace. That is the RoleBinding this command writes.",
    ],
    arguments: [{ name: "NAMESPACE", description: "where", many: true, completes: "namespaces" }],
    options: [
      { flags: "--all", description: "every namespace, also those to come (a ClusterRoleBinding)" },
      { flags: "--revoke", description: "take the grant back" },
      { flags: "--dry-run", description: "print the binding instead of writing it" },
      {
        flags: "--controller-namespace <NAMESPACE>",
        description: "where the controllers run",
        default: defaultNamespace,
        completes: "namespaces",
      },
      output("yaml", "json"),
    ],
    connects: true,
    examples: [
      { line: "grant shop", says: "they may act in shop" },
      { line: "grant shop --revoke", says: "not any more" },
      { line: "grant --all -o yaml > grant.yaml", says: "for a repository of manifests" },
    ],
    load: () => import("./commands/grant.ts"),
  },
  {
    name: "manifests",
    group: "Install",
    summary: "print what kubectl apply needs: CRDs, roles, policies, the controller",
    details: [
      "YAML on stdout and nothing else. The roles hold the verbs the controllers declare and no others.",
      "With rbac --for, only the roles that let the controllers read a foreign kind and, where granted, change it.",
    ],
    arguments: [
      {
        name: "SECTION",
        description: "crds, rbac, policies or all (default: all)",
        choices: ["crds", "rbac", "policies", "all"],
      },
    ],
    options: [
      {
        flags: "--for <RESOURCE.GROUP>",
        description: "a foreign kind to manage, e.g. dicoms.services.example.com; may be repeated",
        many: true,
      },
      { flags: "--image <REF>", description: "the image of the controller (default: autoimagemanager/aim:VERSION)" },
      {
        flags: "-n, --namespace <NAMESPACE>",
        description: "where the controller runs",
        default: defaultNamespace,
      },
    ],
    examples: [
      { line: "manifests | kubectl apply -f -", says: "install everything" },
      {
        line: "manifests rbac --for dicoms.services.example.com | kubectl apply -f -",
        says: "let it manage Dicoms too",
      },
    ],
    load: () => import("./commands/manifests.ts"),
  },
  {
    name: "completion",
    group: "Install",
    summary: "print the completion script of a shell",
    arguments: [{ name: "SHELL", description: "bash, zsh or fish", required: true, choices: ["bash", "zsh", "fish"] }],
    examples: [
      { line: "completion bash > ~/.local/share/bash-completion/completions/aim", says: "bash" },
      { line: 'completion zsh > "$' + '{fpath[1]}/_aim"', says: "zsh" },
      { line: "completion fish > ~/.config/fish/completions/aim.fish", says: "fish" },
    ],
    load: () => import("./commands/completion.ts"),
  },
  {
    name: "controller",
    group: "Run",
    summary: "run the controllers, beside a cluster or inside it",
    details: [
      "Ends cleanly on the first SIGTERM or Ctrl-C: work in hand is finished and the Lease given back. A second one",
      "ends it at once. Any number may run; the holder of the Lease acts, the others stand by.",
    ],
    options: [
      {
        flags: "--metrics-port <PORT>",
        description: "/metrics, /livez and /readyz; 0: none (default: 8080 in a pod, else none)",
      },
      {
        flags: "--metrics-host <ADDRESS>",
        description: "where they listen (default: every address in a pod, else 127.0.0.1)",
      },
      { flags: "--no-leader-elect", description: "act without a Lease; only where nobody else does" },
      {
        flags: "--lease-namespace <NAMESPACE>",
        description: "where the Lease is kept (default: the pod's own namespace, else kube-system)",
        completes: "namespaces",
      },
      { flags: "--kinds <LIST>", description: "run only the controllers of these kinds, separated by commas" },
      {
        flags: "--allow-registry <HOST:PORT>",
        description: "a registry that may be on a private address; http://HOST:PORT: without TLS; may be repeated",
        many: true,
      },
      {
        flags: "--log-level <LEVEL>",
        description: "debug, info, warn, error",
        default: "info",
        choices: ["debug", "info", "warn", "error"],
      },
    ],
    connects: true,
    examples: [
      { line: "controller --kubeconfig ~/.kube/config", says: "from a laptop, against any cluster" },
      { line: "controller --kinds ServiceImage --metrics-port 9090", says: "one controller, with metrics" },
    ],
    load: () => import("./commands/controller.ts"),
  },
  {
    name: "__complete",
    summary: "candidates for a shell's completion, one per line",
    arguments: [
      { name: "WHAT", description: "what to complete", required: true },
      { name: "PREFIX", description: "what was typed so far" },
    ],
    connects: true,
    load: () => import("./commands/complete.ts"),
  },
]
