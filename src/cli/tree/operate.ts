import type { Command } from "../command.ts"
import { defaultNamespace, dryRun, oneRollout, output, timeout } from "./options.ts"

/** Commands that change a rollout, or what the controllers may do. */
export const operate: readonly Command[] = [
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
    load: () => import("../commands/set-image.ts"),
  },
  {
    name: "pause",
    group: "Operate",
    summary: "stop stamping; objects under way finish",
    details: [
      "Sets spec.paused. Objects that already have their new image continue.",
      "With canary/NAME: its run stays as it is; without a run, spec.suspend is set.",
    ],
    arguments: [oneRollout],
    options: [dryRun],
    connects: true,
    examples: [{ line: "pause si/dicom", says: "stop for now" }],
    load: () => import("../commands/pause.ts"),
  },
  {
    name: "resume",
    group: "Operate",
    summary: "continue a paused rollout, or try a rolled-back one again",
    details: [
      "Clears spec.paused. A rollout that was rolled back starts again with the same images, as a new operation.",
      "A halted one continues by itself when the failure is fixed, or with another image: aim set-image.",
      "With deploy/NAME, sts/NAME or ds/NAME: a template that failed in place and was rolled back may be tried again.",
      "With canary/NAME: a paused run goes on, and a template that failed is tried again.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description: "which rollout; or deploy/NAME, sts/NAME, ds/NAME",
        required: true,
        completes: "rollouts",
      },
    ],
    options: [dryRun],
    connects: true,
    examples: [
      { line: "resume si/dicom", says: "continue" },
      { line: "resume deploy/web -n shop", says: "try the template again that was rolled back" },
    ],
    load: () => import("../commands/resume.ts"),
  },
  {
    name: "approve",
    group: "Operate",
    summary: "let tiers start that wait for a person",
    details: [
      "For tiers with requireApproval. Without names: those that wait now. An approval is for one operation: the next",
      "change of images needs a new one. The output names the operation, the image and how many objects get it.",
      "With canary/NAME: the gate at which its run waits opens, and your name is recorded.",
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
    load: () => import("../commands/approve.ts"),
  },
  {
    name: "rollback",
    group: "Operate",
    summary: "undo what the last operation changed",
    details: [
      "Objects that it changed return to the image they ran before, the lowest priority first; others are not touched.",
      "The spec still names the new images: afterwards set the images to keep, or try again with aim resume.",
      "Only the last operation can be rolled back. For an earlier one, the error names the aim set-image to use instead.",
      "With deploy/NAME, sts/NAME or ds/NAME: its template is that of an earlier revision again, also while it is held for",
      "an update in place, when kubectl rollout undo refuses. Pods go back in place where they can.",
      "With canary/NAME: requests go back to the revision before, also after promotion within scaleDownDelaySeconds.",
    ],
    arguments: [
      {
        name: "si/NAME",
        description: "which rollout; or deploy/NAME, sts/NAME, ds/NAME",
        required: true,
        completes: "rollouts",
      },
    ],
    options: [
      {
        flags: "--operation <ID>",
        description: "refuse unless this is the last one (aim history lists them)",
        completes: "operations",
      },
      {
        flags: "--to-revision <N>",
        description: "of a workload: the revision to go back to (default: the one before; aim history lists them)",
      },
      dryRun,
      { flags: "--wait", description: "return when all objects are back" },
      { ...timeout, description: `with --wait, ${timeout.description}` },
    ],
    connects: true,
    examples: [
      { line: "rollback si/dicom --wait", says: "roll back, and return when it is done" },
      { line: "rollback si/dicom --operation g7", says: "only if it is still g7" },
      { line: "rollback deploy/web -n shop --wait", says: "the template before, in place where it can" },
    ],
    load: () => import("../commands/rollback.ts"),
  },
  {
    name: "restart",
    group: "Operate",
    summary: "restart containers in place, pod by pod",
    details: [
      "Each pod gets a ContainerRecreateRequest, which the agent of its node carries out: the pod keeps its address and",
      "volumes. A workload is restarted within --max-unavailable and its PodDisruptionBudgets. Pods that are not ready",
      "come first. After a failure no further pod begins. Interrupted, the command prints what is left and how to go on.",
    ],
    arguments: [
      {
        name: "pod/NAME|WORKLOAD",
        description: "a pod, or deployment/NAME, statefulset/NAME, daemonset/NAME, replicaset/NAME",
        required: true,
        completes: "workloads",
      },
    ],
    options: [
      { flags: "-c, --container <NAME>", description: "only this container; may be repeated", many: true },
      { flags: "--max-unavailable <N>", description: "how many pods may be down at once", default: "1" },
      { flags: "--continue <ID>", description: "go on with a restart: pods that it has restarted are left out" },
      { flags: "--timeout <DURATION>", description: "how long in all: 90s, 10m, 1h30m (default: until it is over)" },
      dryRun,
    ],
    connects: true,
    examples: [
      { line: "restart deploy/web -n shop", says: "one pod after the other" },
      { line: "restart deploy/web -n shop -c app --max-unavailable 2", says: "one container of each, two at a time" },
      { line: "restart pod/web-0 -n shop", says: "one pod" },
    ],
    load: () => import("../commands/restart.ts"),
  },
  {
    name: "hold",
    group: "Operate",
    summary: "hold workloads also between updates, where the server cannot hold a change itself",
    details: [
      "For servers before Kubernetes 1.36, or without the policies of aim. A workload with the annotation",
      "autoimagemanager.io/update-strategy is stopped (a pause, a partition above every pod, or OnDelete), and stays so:",
      "each change of images then goes in place, however it is written. What cannot go in place is left to its own",
      "controller, and the hold stands again afterwards. aim release ends it. Where the server holds changes by itself,",
      "nothing is written.",
    ],
    arguments: [
      {
        name: "WORKLOAD",
        description: "deploy/NAME, sts/NAME or ds/NAME",
        required: true,
        many: true,
        completes: "workloads",
      },
    ],
    options: [{ flags: "--dry-run", description: "check them; write nothing" }],
    connects: true,
    examples: [{ line: "hold deploy/web sts/db -n shop", says: "before the first update" }],
    load: () => import("../commands/hold.ts"),
  },
  {
    name: "release",
    group: "Operate",
    summary: "give workloads back that are held for an update in place",
    details: [
      "Works without the controllers. The workload is as it was before it was held, with its present template: its own",
      "controller goes on from there, and a change that is not in all pods yet becomes a rolling update. Pods that were",
      "drained serve again, and pull jobs of the update are deleted.",
    ],
    arguments: [
      { name: "WORKLOAD", description: "deploy/NAME, sts/NAME or ds/NAME", many: true, completes: "workloads" },
    ],
    options: [
      { flags: "--all", description: "every held workload; with -n, of that namespace" },
      { flags: "--dry-run", description: "list them; write nothing" },
    ],
    connects: true,
    examples: [
      { line: "release deploy/web -n shop", says: "one" },
      { line: "release --all", says: "after aim was uninstalled" },
    ],
    load: () => import("../commands/release.ts"),
  },
  {
    name: "grant",
    group: "Operate",
    summary: "let the controllers change the workloads of a namespace",
    details: [
      "The controllers read everywhere and may change nothing until a person with the right to do so binds the",
      "ClusterRole aim-target to their account, namespace by namespace. This command writes that RoleBinding.",
      "No role includes Secrets: --pull-secrets lets them read the named ones, so that private registries can be asked,",
      "and --secrets those that Canaries, MetricTemplates and AlertProviders name.",
    ],
    arguments: [{ name: "NAMESPACE", description: "which namespaces", many: true, completes: "namespaces" }],
    options: [
      {
        flags: "--pull-secrets <NAME>",
        description: "Secrets of the namespace they may read, and no others; may be repeated, or a,b",
        many: true,
      },
      {
        flags: "--secrets <NAME>",
        description: "the same for Secrets that Canaries and what they measure with name",
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
    load: () => import("../commands/grant.ts"),
  },
]
