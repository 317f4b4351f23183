import type { Command, Option } from "./command.ts"
import { defaultNamespace } from "./manifests/names.ts"

const output = (...choices: string[]): Option => ({
  flags: "-o, --output <FORMAT>",
  description: choices.join(", "),
  choices,
})

const oneRollout = {
  name: "si/NAME",
  description: "which rollout",
  required: true,
  completes: "serviceimages",
} as const

const from: Option = {
  flags: "--from <FILE>",
  description: "a file of aim dump, gzipped or not, instead of a cluster; - is stdin",
  completes: "files",
}

const timeout: Option = {
  flags: "--timeout <DURATION>",
  description: "how long: 90s, 10m, 1h30m; 0 checks once",
  default: "10m",
}

const dryRun: Option = {
  flags: "--dry-run",
  description: "let the server check the change and show it; write nothing",
  same: ["server"],
}

/** Every command, in the order of `aim --help`. Nothing is loaded before it is run: `aim --version` stays fast. */
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

export const commands: readonly Command[] = [
  {
    name: "demo",
    group: "Run",
    summary: "watch a fleet being upgraded or a registry fail, on a cluster in this process",
    details: ["No Kubernetes is needed and nothing is left behind. Time runs twenty times as fast as ours."],
    arguments: [
      {
        name: "STORY",
        description: "which one (default: upgrade)",
        choices: ["upgrade", "canary", "registry-outage"],
      },
    ],
    options: [{ flags: "--list", description: "list the stories" }],
    examples: [
      { line: "demo", says: "the upgrade of a fleet, with a failure" },
      { line: "demo canary", says: "steps, an image that cannot be pulled, and a rollback" },
      { line: "demo registry-outage", says: "a registry goes down, and pods start anyway" },
      { line: "demo --list", says: "all stories" },
    ],
    load: () => import("./commands/demo.ts"),
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
    ],
    examples: [
      { line: "up", says: "an empty cluster, until Ctrl-C" },
      { line: "up --load fleet.yaml --data ./cluster --speed 10", says: "a fleet that is kept for the next time" },
    ],
    load: () => import("./commands/up.ts"),
  },
  {
    name: "get",
    group: "See",
    summary: "list rollouts or alternate image sources, one line each",
    arguments: [
      {
        name: "KIND[/NAME]",
        description: "si, si/NAME, si NAME, or the same with ais (default: si, every ServiceImage)",
        many: true,
        completes: "ours",
      },
    ],
    options: [
      { flags: "-A, --all-namespaces", description: "AlternateImageSources of every namespace" },
      { flags: "-l, --selector <SELECTOR>", description: "only those with these labels, such as service=dicom" },
      { flags: "-w, --watch", description: "then print a line for each change, until Ctrl-C" },
      output("wide", "name", "json", "yaml"),
    ],
    connects: true,
    examples: [
      { line: "get", says: "every ServiceImage and its progress" },
      { line: "get si/dicom-serviceimage-prod -o yaml", says: "one, whole" },
      { line: "get ais -n shop", says: "the AlternateImageSources of a namespace" },
    ],
    load: () => import("./commands/get.ts"),
  },
  {
    name: "status",
    group: "See",
    summary: "show the progress of each rollout, tier by tier",
    details: [
      "On a terminal, a bar per tier: done, under way, to do. Elsewhere, the same facts as plain lines.",
      "With --watch the output is kept up to date until Ctrl-C; without a terminal, a line is printed per change.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description: "which rollouts (default: all); ais or ais/NAME for alternate image sources",
        many: true,
        completes: "ours",
      },
    ],
    options: [
      { flags: "-w, --watch", description: "keep watching" },
      { flags: "-A, --all-namespaces", description: "AlternateImageSources of every namespace" },
      output("wide", "name", "json", "yaml"),
    ],
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
    summary: "return when a rollout is complete, fail when it halts",
    details: [
      "Exit code 0 when Complete is true for the generation that was last written, never for an earlier one.",
      "Exit code 1 when the rollout is halted or stalled, is deleted, or the time is up. It watches; it does not poll.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description: "which rollouts; ais/NAME: until the alternate image source is ready",
        required: true,
        many: true,
        completes: "ours",
      },
    ],
    options: [timeout],
    connects: true,
    examples: [{ line: "wait si/dicom-serviceimage-prod --timeout 30m", says: "for a pipeline's last step" }],
    load: () => import("./commands/wait.ts"),
  },
  {
    name: "plan",
    group: "See",
    summary: "show what happens next, and how long it may take; nothing is written",
    details: [
      "From the planner of the controllers: which objects are stamped next, what each tier waits for, what is left out",
      "and why. The time is what pace and soaks take at least; the time until objects are healthy is not known.",
      "With --file, as if those ServiceImages had been applied; with --from, for a cluster as it was when it was dumped.",
      "With ais or ais/NAME, which image each container of an AlternateImageSource gets next, or what it waits for.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description: "which rollouts (default: all); ais or ais/NAME for alternate image sources",
        many: true,
        completes: "ours",
      },
    ],
    options: [
      {
        flags: "-f, --file <FILE>",
        description: "ServiceImages that are not applied yet; - is stdin",
        completes: "files",
      },
      from,
      output("json", "yaml"),
    ],
    connects: true,
    examples: [
      { line: "plan si/dicom", says: "what happens next" },
      { line: "plan -f serviceimage.yaml", says: "what would happen" },
      { line: "plan --from cluster.dump", says: "later, without the cluster" },
      { line: "plan ais/demo -n shop", says: "what is pulled from elsewhere next" },
    ],
    load: () => import("./commands/plan.ts"),
  },
  {
    name: "why",
    group: "See",
    summary: "explain why an object has its image, or does not have it yet",
    details: [
      "Its tier, priority and step, what it waits for and since when, and what happens next, in a few sentences.",
      "KIND as with kubectl: dicom, dicoms, Dicom, a short name, dicoms.services.example.com, deploy, sts, ds. With",
      "si/NAME, the rollout itself. With pod/NAME, why its containers are pulled from where they are; with ais/NAME, the",
      "AlternateImageSource itself. Without -n, every namespace is searched.",
    ],
    arguments: [{ name: "KIND/NAME", description: "which object", required: true, completes: "objects" }],
    options: [from, output("json", "yaml")],
    connects: true,
    examples: [
      { line: "why dicom/radiology -n shop", says: "why this one" },
      { line: "why si/dicom", says: "why the whole rollout" },
      { line: "why pod/web-0 -n shop", says: "why it pulls from there" },
    ],
    load: () => import("./commands/why.ts"),
  },
  {
    name: "dump",
    group: "See",
    summary: "write what plan and why need from a cluster into one file",
    details: [
      "ServiceImages, the objects they stamp and the pods behind them; AlternateImageSources and, where there is one,",
      "workloads and pods. Reduced to the fields that decisions are made from: no Secrets, no environment variables, no",
      "logs. Names, labels and images are in it. Lines of JSON.",
    ],
    options: [
      { flags: "-o, --output <FILE>", description: "the file to write; - is stdout", default: "-", completes: "files" },
    ],
    connects: true,
    examples: [
      { line: "dump -o cluster.dump", says: "to look at it elsewhere: plan --from, why --from" },
      { line: "dump | gzip > cluster.dump.gz", says: "smaller; plan and why read it directly" },
    ],
    load: () => import("./commands/dump.ts"),
  },
  {
    name: "verify",
    group: "See",
    summary: "compare what equivalent repositories really have",
    details: [
      "For each image of the workloads that an AlternateImageSource looks after, asks every repository from this machine:",
      "does it have the tag, with the same digest, for the same platforms, and do the workload's pull secrets work?",
      "Reads the cluster with your own rights. Exit code 1 if a repository cannot replace the others.",
    ],
    arguments: [{ name: "ais/NAME", description: "which source", required: true, completes: "alternateimagesources" }],
    options: [
      {
        flags: "--allow-registry <HOST:PORT>",
        description:
          "a registry or token server on a private address, or http://HOST:PORT for one without TLS; may be repeated",
        many: true,
      },
      output("json", "yaml"),
    ],
    connects: true,
    examples: [
      { line: "verify ais/demo -n shop", says: "before it is needed" },
      { line: "verify ais/demo -n shop -o json", says: "for programs" },
    ],
    load: () => import("./commands/verify.ts"),
  },
  {
    name: "history",
    group: "See",
    summary: "list the last operations of a rollout and how they ended",
    details: [
      "The current one first, then up to ten earlier ones: images, start, duration, objects, outcome.",
      "Images are shortened to their last part, and shown per tier where tiers differ; -o wide shows them in full.",
      "For an alternate image source, what was switched: when, from where to where, and why.",
    ],
    arguments: [
      { name: "si/NAME", description: "which rollout; or ais/NAME", required: true, many: true, completes: "ours" },
    ],
    options: [output("wide", "json", "yaml")],
    connects: true,
    examples: [
      { line: "history si/dicom-serviceimage-prod", says: "what was rolled out, and how it ended" },
      { line: "history si/dicom-serviceimage-prod -o json", says: "for programs" },
    ],
    load: () => import("./commands/history.ts"),
  },
  {
    name: "set-image",
    group: "Operate",
    summary: "roll out other images, unless a rollout is still under way",
    details: [
      'IMAGE alone sets spec.defaultImage, TIER=IMAGE the image of a tier (=IMAGE: of the tier ""), and TIER= removes',
      "the tier's own image, so that it follows the default. Nothing is written when no tier gets another image.",
      "Refused (1) while an operation is in progress or a generation is unobserved, unless --supersede is given.",
      "A halted rollout is not in progress. If the object changes in between, it is checked again before the write.",
    ],
    arguments: [
      oneRollout,
      {
        name: "[TIER=]IMAGE",
        description: "the default image, or that of a tier",
        required: true,
        many: true,
        completes: "settings",
      },
    ],
    options: [
      { flags: "--supersede", description: "overtake the operation in progress" },
      dryRun,
      { flags: "--wait", description: "then wait for the rollout, as aim wait does" },
      { ...timeout, description: `with --wait, ${timeout.description}` },
    ],
    connects: true,
    examples: [
      { line: "set-image si/dicom registry.example.com/dicom:v3", says: "for every tier without its own image" },
      { line: "set-image si/dicom earlyAccess=registry.example.com/dicom:v4", says: "for one tier" },
      { line: "set-image si/dicom registry.example.com/dicom:v3 --wait --timeout 30m", says: "in a pipeline" },
    ],
    load: () => import("./commands/set-image.ts"),
  },
  {
    name: "pause",
    group: "Operate",
    summary: "stop stamping; objects under way finish",
    details: ["Sets spec.paused. Objects that already have their new image continue."],
    arguments: [oneRollout],
    options: [dryRun],
    connects: true,
    examples: [{ line: "pause si/dicom", says: "stop for now" }],
    load: () => import("./commands/pause.ts"),
  },
  {
    name: "resume",
    group: "Operate",
    summary: "continue a paused rollout, or try a rolled-back one again",
    details: [
      "Clears spec.paused. A rollout that was rolled back starts again with the same images, as a new operation.",
      "A halted one continues by itself when the failure is fixed, or with another image: aim set-image.",
    ],
    arguments: [oneRollout],
    options: [dryRun],
    connects: true,
    examples: [{ line: "resume si/dicom", says: "continue" }],
    load: () => import("./commands/resume.ts"),
  },
  {
    name: "approve",
    group: "Operate",
    summary: "let tiers start that wait for a person",
    details: [
      "For tiers with requireApproval. Without names: those that wait now. An approval is for one operation: the next",
      "change of images needs a new one. The output names the operation, the image and how many objects get it.",
    ],
    arguments: [
      oneRollout,
      { name: "TIER", description: 'which tiers; "" is the default one', many: true, completes: "tiers" },
    ],
    options: [dryRun],
    connects: true,
    examples: [
      { line: "approve si/dicom", says: "what waits now" },
      { line: "approve si/dicom general", says: "one tier, before or while it waits" },
    ],
    load: () => import("./commands/approve.ts"),
  },
  {
    name: "rollback",
    group: "Operate",
    summary: "undo what the last operation changed",
    details: [
      "Objects that it changed return to the image they ran before, the lowest priority first; others are not touched.",
      "The spec still names the new images: afterwards set the images to keep, or try again with aim resume.",
      "Only the last operation can be rolled back. For an earlier one, the error names the aim set-image to use instead.",
    ],
    arguments: [oneRollout],
    options: [
      {
        flags: "--operation <ID>",
        description: "refuse unless this is the last one (aim history lists them)",
        completes: "operations",
      },
      dryRun,
      { flags: "--wait", description: "return when all objects are back" },
      { ...timeout, description: `with --wait, ${timeout.description}` },
    ],
    connects: true,
    examples: [
      { line: "rollback si/dicom --wait", says: "roll back, and return when it is done" },
      { line: "rollback si/dicom --operation g7", says: "only if it is still g7" },
    ],
    load: () => import("./commands/rollback.ts"),
  },
  {
    name: "grant",
    group: "Operate",
    summary: "let the controllers change the workloads of a namespace",
    details: [
      "The controllers read everywhere and may change nothing until a person with the right to do so binds the",
      "ClusterRole aim-target to their account, namespace by namespace. This command writes that RoleBinding.",
      "No role includes Secrets: --pull-secrets lets them read the named ones, so that private registries can be asked.",
    ],
    arguments: [{ name: "NAMESPACE", description: "which namespaces", many: true, completes: "namespaces" }],
    options: [
      {
        flags: "--pull-secrets <NAME>",
        description: "Secrets of the namespace they may read, and no others; may be repeated, or a,b",
        many: true,
      },
      { flags: "--all", description: "every existing namespace except kube-* and the controllers' own" },
      { flags: "--yes", description: "confirm --all" },
      { flags: "--revoke", description: "remove the grant" },
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
      { line: "grant shop", says: "the controllers may act in shop" },
      { line: "grant shop --revoke", says: "they no longer may" },
      { line: "grant shop --pull-secrets quay,harbor", says: "and read these two Secrets" },
      { line: "grant shop -o yaml > grant.yaml", says: "for a repository of manifests" },
    ],
    load: () => import("./commands/grant.ts"),
  },
  {
    name: "manifests",
    group: "Install",
    summary: "print what kubectl apply needs: CRDs, roles, policies, the controller, the agents",
    details: [
      "YAML on stdout and nothing else. The roles hold the verbs that the controllers declare and no others.",
      "With rbac --for, only the roles that let the controllers read a custom kind and, where granted, change it.",
    ],
    arguments: [
      {
        name: "SECTION",
        description: "crds, rbac, policies, agent or all (default: all)",
        choices: ["crds", "rbac", "policies", "agent", "all"],
      },
    ],
    options: [
      {
        flags: "--for <RESOURCE.GROUP>",
        description: "a custom kind to manage, e.g. dicoms.services.example.com; may be repeated",
        many: true,
      },
      { flags: "--image <REF>", description: "the image of the controller (default: autoimagemanager/aim:VERSION)" },
      {
        flags: "--cri-socket <PATH>",
        description:
          "the runtime's socket on the nodes, for agent (default: containerd's); with it, all has the agents",
      },
      {
        flags: "-n, --namespace <NAMESPACE>",
        description: "where the controller runs",
        default: defaultNamespace,
      },
    ],
    examples: [
      { line: "manifests | kubectl apply -f -", says: "install everything" },
      { line: "manifests agent | kubectl apply -f -", says: "and an agent on every node, which restarts containers" },
      {
        line: "manifests rbac --for dicoms.services.example.com | kubectl apply -f -",
        says: "let it manage Dicoms too",
      },
    ],
    load: () => import("./commands/manifests.ts"),
  },
  {
    name: "convert",
    group: "Install",
    summary: "convert manifests of Kuiper, Saffire and the original ServiceImage",
    details: [
      "An AlternateImageSource of Kuiper or Saffire, with or without targets, or a ServiceImage of another group. YAML on",
      "stdout, checked as the server would; on stderr, with line numbers, what was dropped or guessed. All of a file or none.",
    ],
    options: [
      { flags: "-f, --file <FILE>", description: "the manifests; - is stdin", completes: "files" },
      {
        flags: "--target <GROUP/VERSION/KIND>",
        description: "which kind a ServiceImage stamps (default: guessed from its label service)",
      },
    ],
    examples: [
      { line: "convert -f kuiper.yaml > sources.yaml", says: "to review it first" },
      { line: "convert -f - | kubectl apply -f -", says: "for example from kubectl get -o yaml" },
    ],
    load: () => import("./commands/convert.ts"),
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
    name: "version",
    group: "Install",
    summary: "print the version",
    examples: [{ line: "version", says: "the same as aim --version" }],
    load: () => import("./commands/version.ts"),
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
      logLevel,
    ],
    connects: true,
    examples: [
      { line: "controller --kubeconfig ~/.kube/config", says: "from a laptop, against any cluster" },
      { line: "controller --kinds ServiceImage --metrics-port 9090", says: "one controller, with metrics" },
    ],
    load: () => import("./commands/controller.ts"),
  },
  {
    name: "agent",
    group: "Run",
    summary: "run the agent of one node: it restarts containers that were asked for",
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
      ...metricsOptions,
      logLevel,
    ],
    connects: true,
    examples: [{ line: "agent --node-name worker-1", says: "on the node itself, with a kubeconfig" }],
    load: () => import("./commands/agent.ts"),
  },
  {
    name: "__complete",
    summary: "candidates for a shell's completion, one per line",
    arguments: [
      { name: "WHAT", description: "what to complete", required: true },
      { name: "PREFIX", description: "what was typed so far" },
      { name: "OF", description: "the rollout whose tiers they are" },
    ],
    connects: true,
    load: () => import("./commands/complete.ts"),
  },
  {
    name: "__complete_line",
    summary: "candidates for the end of a line, in the form that kubectl expects from a plug-in",
    arguments: [{ name: "WORD", description: "the words after kubectl aim, the last one unfinished", many: true }],
    load: () => import("./commands/complete-line.ts"),
  },
]
