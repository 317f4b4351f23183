import type { Command } from "../command.ts"
import { from, output, timeout } from "./options.ts"

/** Commands that only read the cluster. */
export const see: readonly Command[] = [
  {
    name: "get",
    group: "See",
    summary: "list rollouts, or objects of another kind of aim, one line each",
    arguments: [
      {
        name: "KIND[/NAME]",
        description: "si, si/NAME, si NAME, or the same with canary, mt, ap, ais, crr, ipj, ilpj or nimg (default: si)",
        many: true,
        completes: "ours",
      },
    ],
    options: [
      { flags: "-A, --all-namespaces", description: "objects of every namespace; ServiceImages have none" },
      { flags: "-l, --selector <SELECTOR>", description: "only those with these labels, such as service=dicom" },
      { flags: "-w, --watch", description: "then print a line for each change, until Ctrl-C" },
      output("wide", "name", "json", "yaml"),
    ],
    connects: true,
    examples: [
      { line: "get", says: "every ServiceImage and its progress" },
      { line: "get si/dicom-serviceimage-prod -o yaml", says: "one, whole" },
      { line: "get ais -n shop", says: "the AlternateImageSources of a namespace" },
      { line: "get ipj -A", says: "the image pulls of every namespace" },
    ],
    load: () => import("../commands/get.ts"),
  },
  {
    name: "status",
    group: "See",
    summary: "show the progress of each rollout, tier by tier",
    details: [
      "On a terminal, a bar per tier: done, under way, to do. Elsewhere, the same facts as plain lines.",
      "With --watch the output is kept up to date until Ctrl-C; without a terminal, a line is printed per change.",
      "With deploy, sts or ds: how the last change of a workload stands, pod by pod, also where it is held for an update",
      "in place; kubectl rollout status calls a held StatefulSet complete. -o wide lists every pod.",
      "With canary: both revisions, the weight and since when, verdicts of metrics, and the gate at which a run waits.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description:
          "which rollouts (default: all); canary, mt, ap, ais, crr, ipj, ilpj, nimg, deploy, sts or ds, with or without a name, for other kinds",
        many: true,
        completes: "rollouts",
      },
    ],
    options: [
      { flags: "-w, --watch", description: "keep watching" },
      { flags: "-A, --all-namespaces", description: "objects of every namespace; ServiceImages have none" },
      output("wide", "name", "json", "yaml"),
    ],
    connects: true,
    examples: [
      { line: "status", says: "all rollouts, now" },
      { line: "status si/dicom-serviceimage-prod -w", says: "one of them, live" },
      { line: "status deploy/web -n shop", says: "how the last change of a Deployment stands" },
      { line: "status canary/web -n shop -w", says: "a new version on its way, live" },
    ],
    load: () => import("../commands/status.ts"),
  },
  {
    name: "wait",
    group: "See",
    summary: "return when a rollout is complete, fail when it halts",
    details: [
      "Exit code 0 when Complete is true for the generation that was last written, never for an earlier one.",
      "Exit code 1 when the rollout is halted or stalled, is deleted, or the time is up. It watches; it does not poll.",
      "With deploy, sts or ds: until every pod has the last change and no hold is left; 1 where it needs a person.",
      "With canary: until the last change of its target is promoted; 1 where its run failed.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description:
          "which rollouts, workloads or Canaries; with mt, ap, ais, crr, ipj, ilpj or nimg: until the object is ready",
        required: true,
        many: true,
        completes: "rollouts",
      },
    ],
    options: [timeout],
    connects: true,
    examples: [
      { line: "wait si/dicom-serviceimage-prod --timeout 30m", says: "for a pipeline's last step" },
      { line: "wait ipj/web -n shop", says: "until every node has the image" },
      { line: "wait deploy/web -n shop", says: "until every pod has the last change, in place or not" },
    ],
    load: () => import("../commands/wait.ts"),
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
      "With deploy/NAME, sts/NAME or ds/NAME: whether its change goes in place or makes other pods, which pods, which nodes",
      "lack the image, which budget blocks. With CONTAINER=IMAGE, as for kubectl set image, or --file: for a change that is",
      "not made yet. The server is asked by a dry run.",
      "With canary/NAME, or --file with Canaries: objects, weights and sizes of each step, the least duration, gates, what",
      "does not work or has no effect, and which addresses an administrator must allow.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description:
          "which rollouts (default: all); canary; ais for alternate image sources; deploy/NAME [CONTAINER=IMAGE]",
        many: true,
        completes: "rollouts",
      },
    ],
    options: [
      {
        flags: "-f, --file <FILE>",
        description: "ServiceImages, Canaries, or the workload, that are not applied yet; - is stdin",
        completes: "files",
      },
      from,
      output("json", "yaml"),
    ],
    connects: true,
    examples: [
      { line: "plan si/dicom", says: "what happens next" },
      { line: "plan -f serviceimage.yaml", says: "what would happen" },
      { line: "plan -f canary.yaml -n shop", says: "before a Canary is applied" },
      { line: "plan --from cluster.dump", says: "later, without the cluster" },
      { line: "plan ais/demo -n shop", says: "what is pulled from elsewhere next" },
      { line: "plan deploy/web web=registry.example.com/web:2 -n shop", says: "before kubectl set image" },
    ],
    load: () => import("../commands/plan.ts"),
  },
  {
    name: "why",
    group: "See",
    summary: "explain why an object has its image, or does not have it yet",
    details: [
      "Its tier, priority and step, what it waits for and since when, and what happens next, in a few sentences.",
      "KIND as with kubectl: dicom, dicoms, Dicom, a short name, dicoms.services.example.com, deploy, sts, ds. With",
      "si/NAME, the rollout itself. With pod/NAME, why its containers are pulled from where they are; with ais/NAME, the",
      "AlternateImageSource itself. With crr, ipj, ilpj or nimg: what it waits for, and which node or image failed, and why.",
      "Of a workload that is updated in place: the operation, what it waits for, and its pods. With canary/NAME: its run;",
      "pod/NAME says of which of its revisions a pod is, and which share of the requests that has.",
      "Without -n, every namespace is searched.",
    ],
    arguments: [{ name: "KIND/NAME", description: "which object", required: true, completes: "objects" }],
    options: [from, output("json", "yaml")],
    connects: true,
    examples: [
      { line: "why dicom/radiology -n shop", says: "why this one" },
      { line: "why si/dicom", says: "why the whole rollout" },
      { line: "why pod/web-0 -n shop", says: "why it pulls from there" },
      { line: "why ipj/web -n shop", says: "which nodes do not have the image, and why" },
    ],
    load: () => import("../commands/why.ts"),
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
    load: () => import("../commands/dump.ts"),
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
    load: () => import("../commands/verify.ts"),
  },
  {
    name: "history",
    group: "See",
    summary: "list the last operations of a rollout and how they ended",
    details: [
      "The current one first, then up to ten earlier ones: images, start, duration, objects, outcome.",
      "Images are shortened to their last part, and shown per tier where tiers differ; -o wide shows them in full.",
      "For an alternate image source, what was switched: when, from where to where, and why.",
      "For deploy/NAME, sts/NAME or ds/NAME: the revisions that Kubernetes keeps, with their images and pods.",
      "For canary/NAME: the last ten runs, how they ended and why, and the user that approved.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description: "which rollout; or canary/NAME, ais/NAME, deploy/NAME, sts/NAME, ds/NAME",
        required: true,
        many: true,
        completes: "rollouts",
      },
    ],
    options: [output("wide", "json", "yaml")],
    connects: true,
    examples: [
      { line: "history si/dicom-serviceimage-prod", says: "what was rolled out, and how it ended" },
      { line: "history si/dicom-serviceimage-prod -o json", says: "for programs" },
      { line: "history deploy/web -n shop", says: "the revisions of a Deployment, with images" },
    ],
    load: () => import("../commands/history.ts"),
  },
]
