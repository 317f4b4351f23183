import type { Mutant } from "./mutants.ts"

const controller = "src/controllers/in-place"
const core = "src/core/in-place"
const faults = "test/simulation/in-place-faults"
const stories = "test/scenarios/in-place"
const standing = "test/scenarios/in-place-standing"

/** The file of the folder that has the code is looked for: adapters move it. */
const mistake = (
  file: string,
  find: string,
  replace: string,
  { tests = faults, caughtBy, says }: Pick<Mutant, "tests" | "caughtBy" | "says">,
): Mutant => ({ file, edits: [{ find, replace }], tests, caughtBy, says })

const killed = { caughtBy: "the process is killed after it" }

/** In StatefulSets and DaemonSets. */
const labelled = {
  tests: "test/scenarios/in-place-statefulset",
  caughtBy: "a pod is labelled only after it has run the new image in health",
}

/** Mistakes where pods are updated in place. */
export const inPlaceMutants: Record<string, Mutant> = {
  "no fence": mistake(
    controller,
    "const isPassed = current.note?.fence === fence && current.note.operation === operationOf(workload)",
    "const isPassed = true",
    { caughtBy: "five seconds in ReplicaSet" },
  ),
  "a flip before the hold was observed": mistake(
    controller,
    '    if (!workload.isObserved) return { is: "Waiting", actions: [] }\n',
    "",
    { caughtBy: "that has not seen the hold" },
  ),
  "a release without a last look": mistake(
    controller,
    "action.looksAgain && !(await isStillDone(world, seen, look, action))",
    "action.looksAgain && !isStillDone",
    { caughtBy: "that we see late, is brought along" },
  ),
  "a standing hold that keeps the number of its update": mistake(
    controller,
    "settleOf(resourceVersion, action.note, renewedHoldOf(hold!, generation))",
    "settleOf(resourceVersion, action.note, renewedHoldOf(hold!, hold!.generation))",
    { tests: standing, caughtBy: "two updates in a row" },
  ),
  "a hold that stands again in the middle of a rolling update": mistake(
    controller,
    'if (!seen.native.isRolledOut) return { ...cleanedUp(seen, []), rest: "Lent" }',
    "",
    { tests: standing, caughtBy: "another field: its own controller does it" },
  ),
  "a standing hold that is released with its update": mistake(
    controller,
    'seen.workload.hold?.isStanding ? "settle" : "release"',
    '"release"',
    { tests: standing, caughtBy: "two updates in a row" },
  ),
  "a gate that is written for any version": mistake(
    core,
    "  metadata: { uid, resourceVersion },\n  status: {",
    "  metadata: { uid },\n  status: {",
    { ...killed, says: "S21" },
  ),
  "a gate True from an old pod": mistake(
    core,
    'if (standing.is === "Updated") return true',
    'if (standing.is === "Updated" || standing.is === "Restarting") return true',
    { ...killed, says: "S22" },
  ),
  "an image that is written for any version": mistake(
    controller,
    "      uid,\n      resourceVersion,\n      labels:",
    "      uid,\n      labels:",
    { ...killed, says: "S21" },
  ),
  "a name for a UID": mistake(
    controller,
    "      uid,\n      resourceVersion,\n      labels:",
    "      resourceVersion,\n      labels:",
    { ...killed, says: "S21" },
  ),
  "a release for any version": mistake(
    core,
    "metadata: { resourceVersion, annotations: { [heldMark]: null,",
    "metadata: { annotations: { [heldMark]: null,",
    { ...killed, says: "S10" },
  ),
  "a flip for any version": mistake(
    controller,
    '  { op: "replace", path: "/metadata/resourceVersion", value: revision.resourceVersion },\n',
    "",
    { ...killed, says: "S10" },
  ),
  "a pod that is not drained": mistake(
    core,
    'writes.push(pod.gate ? { do: "drain", pod, asksBudget: true } : { ...patch, asksBudget: true })',
    "writes.push({ ...patch, asksBudget: true })",
    { ...killed, says: "S21" },
  ),
  "a grace period that is not waited for": mistake(
    core,
    "if (evidence.now >= at) writes.push(patch)",
    "if (evidence.now <= at) writes.push(patch)",
    { ...killed, says: "S21" },
  ),
  "a budget that is spent twice": mistake(core, "      room--\n", "", { ...killed, says: "S23" }),
  "a budget that two workloads spend": mistake(
    controller,
    "if (!full) taken.take(ownerOf(key), placeOf(pod))",
    "if (full) taken.take(ownerOf(key), placeOf(pod))",
    { tests: `${stories}-budgets`, caughtBy: "one pod at a time where one is allowed", says: "S23" },
  ),
  "a write in doubt, counted as one that was not made": mistake(
    controller,
    'if (result?.is === "Unknown" && isDisturbing)',
    'if (result?.is === "Written" && isDisturbing)',
    { tests: `${stories}-budgets`, caughtBy: "a write without an answer keeps its place", says: "S23" },
  ),
  "a patch that is sent after its update was given up": mistake(
    controller,
    '  if (write.do !== "undrain" && !isStillWanted(world, seen, key, write)) return { is: "Late" }\n',
    "",
    { tests: `${stories}-late`, caughtBy: "the image is changed back: the patch is not sent" },
  ),
  "a pod that restarts, counted as one that serves": mistake(
    core,
    "pods.filter(pod => !pod.isReady || underWay.has(pod)).length",
    "pods.filter(pod => !pod.isReady).length",
    { caughtBy: "stopped across flip and release", says: "S23" },
  ),
  "a decision before our own writes are seen": mistake(
    controller,
    "isCurrent && showsOwnWrites(near, memory)",
    "isCurrent",
    { tests: `${stories}-budgets`, caughtBy: "a write without an answer keeps its place" },
  ),
  "health that is not waited for": mistake(
    core,
    'isOwn && pod.node !== "" ? proofOf(pod, mark, target, evidence) : { is: "Updated" }',
    '{ is: "Updated" }',
    { ...killed, says: "S22" },
  ),
  "a label before the change": mistake(controller, "native.label(proven)", "native.label(pods)", labelled),
  "a label before health": mistake(
    core,
    `    if (standingOf(pod, target, evidence).is !== "Updated" || !isUp(pod)) return false
    if (pod.mark && proofOf(pod, pod.mark, target, evidence).is !== "Updated") return false
`,
    '    if (standingOf(pod, target, evidence).is === "Stale") return false\n',
    labelled,
  ),
  "a label before the pod was ready for long enough": mistake(
    core,
    "    return evidence.now >= at\n",
    "    return evidence.now >= 0\n",
    { tests: "src/controllers/in-place/set", caughtBy: "no label before minReadySeconds" },
  ),
  "a proof that is not kept": mistake(
    core,
    'if (found.is === "Updated" || !(mark.proven || evidence.isProven?.(pod))) return found',
    "if (evidence.now > 0) return found",
    { tests: `${stories}-lost`, caughtBy: "the pod stays updated" },
  ),
  "a lost node that is a failure of the image": mistake(
    core,
    '  if (node?.isReady === false) return { is: "Restarting", isLost: true }\n',
    "",
    { tests: `${stories}-lost`, caughtBy: "it is waited for, and named" },
  ),
  "a failure that is forgotten at the release": mistake(
    core,
    "return isAsked ? undefined : note.failed",
    "return undefined",
    { tests: `${stories}-between`, caughtBy: "GitOps writes an image again" },
  ),
  "an image that is not verified": mistake(
    controller,
    'if (found.is === "Present") return undefined\n',
    'if (found.is === "Present" || found.is === "Missing") return undefined\n',
    { caughtBy: "five seconds in ReplicaSet", says: "S17" },
  ),
  "a history that is not kept": mistake(
    controller,
    '...(isKept || !workload.keepsHistory || current.number === "" ? [] : [history]),',
    "...[history].slice(1),",
    { tests: stories, caughtBy: "kubectl rollout history shows both" },
  ),
  "a double that is not deleted": mistake(
    controller,
    '.map((revision): DeploymentAction => ({ do: "deleteDouble", revision }))',
    ".flatMap((): DeploymentAction[] => [])",
    { tests: stories, caughtBy: "an update that follows a native one" },
  ),
  "pods that are not taken back": mistake(controller, "if (!back) return", "if (!back || back) return", {
    tests: stories,
    caughtBy: "no pod stays on the other image",
  }),
  "a hold that is not asserted again": mistake(
    "src/policies",
    "  ...stop,\n  isAgain: `",
    "  ...stop,\n  isAgain: `false && ",
    { tests: "test/scenarios/in-place-hold", caughtBy: "an apply with its own strategy does not end it" },
  ),
  "a mark that does not come back": mistake(
    "src/policies",
    "const hasLostMark = (stop: Stop) =>\n  `",
    "const hasLostMark = (stop: Stop) =>\n  `false && ",
    { tests: "test/scenarios/in-place-lost-hold", caughtBy: "loses the annotation: the update in place goes on" },
  ),
  "a replacement that is taken for a release": mistake(
    "src/policies",
    "const hasNoMark = `(",
    "const hasNoMark = `(false && ",
    { tests: "test/scenarios/in-place-lost-hold", caughtBy: "is replaced by its manifest with the same image" },
  ),
  "a change that is recorded late": mistake(
    controller,
    "if (!before || before.operation !== operation || !isWithin(touched, before.touched))",
    "if (!before)",
    { tests: `${stories}-between`, caughtBy: "another container is changed instead" },
  ),
}
