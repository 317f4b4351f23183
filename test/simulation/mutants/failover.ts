import type { Mutant } from "./mutants.ts"

const controller = "src/controllers/alternateimagesource"
const faults = "test/simulation/failover-faults"
const stories = "test/scenarios/alternateimagesource"
const tables = `${controller}/decide.test.ts`

const edit = (file: string, find: string, replace: string, tests: string, caughtBy: string): Mutant => ({
  file: `${controller}/${file}`,
  edits: [{ find, replace }],
  tests,
  caughtBy,
})

/** Possible mistakes where pulls are failed over. */
export const failoverMutants: Record<string, Mutant> = {
  "a repair without what it was decided from": edit(
    "apply.ts",
    "      uid,\n      resourceVersion,\n      annotations: { [decisionAnnotation]: decision },\n      ...(revision",
    "      annotations: { [decisionAnnotation]: decision },\n      ...(revision",
    stories,
    "is passed by, in place",
  ),
  "a workload known by its name": {
    file: `${controller}/incident.ts`,
    edits: [
      { find: "before?.uid === workload.uid ? before.incident", replace: "before ? before.incident" },
      { find: "before?.uid === workload.uid ? before.switches", replace: "before ? before.switches" },
    ],
    tests: tables,
    caughtBy: "made anew|under the same name",
  },
  "a wait without a timer": edit(
    "decide.ts",
    "wait(group, incident, reason, here, { lookAgainAt })",
    "wait(group, incident, reason, here, { lookAgainAt: lookAgainAt && undefined })",
    stories,
    "19\\. the cool-down",
  ),
  "a forgotten cool-down": {
    file: `${controller}/decide.ts`,
    edits: [
      { find: '  if (isConfirmed && cooledAt > now) return later("CoolingDown", cooledAt)\n', replace: "" },
      { find: '  if (cooledAt > now) return later("CoolingDown", cooledAt)\n', replace: "" },
    ],
    tests: stories,
    caughtBy: "17\\. of three|19\\. the cool-down",
  },
  "a switch that is told before it was accepted": edit(
    "report.ts",
    'if (decision?.step && (accepted > 0 || decision.step.reason === "SwitchedBack")) {',
    "if (decision?.step) {",
    faults,
    "StatefulSet.*a conflict is the answer",
  ),
  "a repository that works before a pod was sent there": edit(
    "report.ts",
    "if (!incident || !decision.step || accepted > 0) return incident",
    "return incident",
    faults,
    "StatefulSet.*a conflict is the answer",
  ),
  "a failed signature check that is got around": edit(
    "decide.ts",
    'failure === "SignatureRejected" || failure === "DiskFull"',
    'failure === "DiskFull"',
    tables,
    "SignatureRejected|signature",
  ),
  "a pod that is taken along by the others": edit(
    "decide.ts",
    "const waiting = [...movable, ",
    "const waiting = [...group.failing, ",
    tables,
    "taken along",
  ),
  "a container that has run": edit(
    "facts.ts",
    "if (!container || !waiting || hasStarted) return []",
    "if (!container || !waiting) return []",
    stories,
    "that has run is left alone",
  ),
  "news of the repository before, believed": edit(
    "facts.ts",
    "if (decision && isOldNews(message, container.image, decision.from)) return []",
    "",
    stories,
    "takes long to pull",
  ),
  "a template that forgets what was bad": edit(
    "decide.ts",
    "const overAt = moved === undefined ? now : moved + stableMs",
    "const overAt = now",
    stories,
    "does not go back",
  ),
  "a template that goes round": edit(
    "decide.ts",
    'restsUntil !== undefined && policy.apply === "Pod" ? [] : incident.bad',
    "restsUntil !== undefined ? [] : incident.bad",
    tables,
    "each try is a rollout",
  ),
  "other bits under the same tag": edit(
    "candidates.ts",
    'if (!mustCompare || said.digest === digest) return "Good"',
    'if (!mustCompare || said.digest !== "") return "Good"',
    stories,
    "5\\. a mirror's tag",
  ),
  "a repair that is forgotten with its process": edit(
    "incident.ts",
    "return isTold ? undefined : latest",
    "return isTold ? undefined : undefined",
    faults,
    "first repository is out.*ends as it would have: the process is killed after it",
  ),
  "a way back that is found again and again": edit(
    "incident.ts",
    'if (last?.reason === "SwitchedBack" && (parseInstant(last.time) ?? 0) >= repaired.at) return undefined',
    "",
    stories,
    "20\\. the way back",
  ),
  "all down, asked again at once": edit(
    "decide.ts",
    "downMsFirst * 2 ** (attempts - 1)",
    "downMsFirst",
    stories,
    "18\\. when all are down",
  ),
}
