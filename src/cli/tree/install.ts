import type { Command } from "../command.ts"
import { defaultNamespace } from "./options.ts"

/** Commands for setting things up. */
export const install: readonly Command[] = [
  {
    name: "manifests",
    group: "Install",
    summary: "print what kubectl apply needs: CRDs, roles, policies, the controller, the agents",
    details: [
      "YAML on stdout and nothing else. The roles hold the verbs that the controllers declare and no others.",
      "all has an agent for every node. It mounts the socket of the node's container runtime, which is",
      "/run/containerd/containerd.sock unless --cri-socket names another; --no-agent leaves the agents out.",
      "With rbac --for, only the roles that let the controllers read a custom kind and, where granted, change it.",
      "dashboard is a server without rights, for viewers with tokens of their own; it is not part of all.",
    ],
    arguments: [
      {
        name: "SECTION",
        description: "crds, rbac, policies, agent, dashboard or all (default: all)",
        choices: ["crds", "rbac", "policies", "agent", "dashboard", "all"],
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
        description: "the runtime's socket on the nodes, for the agents (default: containerd's)",
      },
      { flags: "--host <NAME>", description: "for dashboard: the name that browsers use, with its port if unusual" },
      { flags: "--base-path <PATH>", description: "for dashboard: the path under which a proxy serves it, e.g. /aim" },
      {
        flags: "--tls-secret <NAME>",
        description: "for dashboard: serve TLS with this Secret (kubernetes.io/tls) of its namespace",
      },
      { flags: "--operate", description: "for dashboard: let the page change what its viewer may change" },
      { flags: "--no-agent", description: "all without the agents: nothing restarts containers or pulls images" },
      {
        flags: "-n, --namespace <NAMESPACE>",
        description: "where the controller runs",
        default: defaultNamespace,
      },
    ],
    examples: [
      { line: "manifests | kubectl apply -f -", says: "install everything" },
      { line: "manifests --no-agent | kubectl apply -f -", says: "without an agent on every node" },
      { line: "manifests agent | kubectl apply -f -", says: "the agents later" },
      { line: "manifests dashboard --host aim.example.com | kubectl apply -f -", says: "the dashboard, for a team" },
      {
        line: "manifests rbac --for dicoms.services.example.com | kubectl apply -f -",
        says: "let it manage Dicoms too",
      },
    ],
    load: () => import("../commands/manifests.ts"),
  },
  {
    name: "convert",
    group: "Install",
    summary: "convert manifests of Flagger, Argo Rollouts, Kuiper, Saffire, OpenKruise and the original ServiceImage",
    details: [
      "An AlternateImageSource of Kuiper or Saffire, with or without targets, a ServiceImage of another group, or OpenKruise's",
      "ContainerRecreateRequest, ImagePullJob, ImageListPullJob and NodeImage, or Flagger's Canary, MetricTemplate and",
      "AlertProvider, or a Rollout and the AnalysisTemplates of Argo Rollouts, in one file. YAML on stdout, checked as the server would; on stderr, with line numbers, what was dropped or guessed,",
      "what does not work here, and the flags that allow the addresses in it. All of a file or none.",
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
      { line: "convert -f flagger.yaml > canaries.yaml", says: "and read what it says of each line" },
      { line: "convert -f - | kubectl apply -f -", says: "for example from kubectl get -o yaml" },
    ],
    load: () => import("../commands/convert.ts"),
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
    load: () => import("../commands/completion.ts"),
  },
  {
    name: "version",
    group: "Install",
    summary: "print the version",
    examples: [{ line: "version", says: "the same as aim --version" }],
    load: () => import("../commands/version.ts"),
  },
]
