import type { Mutant } from "./mutants.ts"

const pulls = "test/simulation/pull-faults"
const restarts = "test/simulation/restart-faults"

const edit = (file: string, find: string, replace: string, caughtBy: string, says?: string): Mutant => ({
  file,
  edits: [{ find, replace }],
  tests: pulls,
  caughtBy,
  says,
})
const ofRestarts = (file: string, find: string, replace: string, caughtBy: string, says?: string): Mutant => ({
  ...edit(file, find, replace, caughtBy, says),
  tests: restarts,
})

/** Mistakes where images are brought to nodes and containers are stopped there: in the manager and in the agent. */
export const nodeWorkMutants: Record<string, Mutant> = {
  "the word of a pull, taken as proof": edit(
    "src/agent/pull/flights.ts",
    "const proof = await runtime.imageStatus(reference, { signal })",
    "const proof = { id: imageID }",
    "two jobs over three nodes.*killed before it, at each call",
    "S17",
  ),
  "what was said of an earlier request for an image, repeated by the agent": edit(
    "src/agent/pull/plan.ts",
    "known && known.version >= wanted.tag.version ? known : freshState(wanted)",
    "known ? { ...known, version: wanted.tag.version } : freshState(wanted)",
    "the same image three times",
    "S17",
  ),
  "one pull too many on a node": edit(
    "src/core/pulls/node-turns.ts",
    "inFlight.length + chosen.length < most",
    "inFlight.length + chosen.length <= most",
    "a list of images from three registries.*at each write of the agent",
    "S16",
  ),
  "pulls that were granted and are under way, not counted": edit(
    "src/core/pulls/registry-budget.ts",
    "limit - host.used.size - granted",
    "limit - granted",
    "two jobs over three nodes.*at each write of the agent",
    "S16",
  ),
  "pulls that a manager before this one began, not counted": edit(
    "src/core/pulls/board.ts",
    "      else this.budget.use(hostOf(entry), idOf(name, entry))\n",
    "",
    "two jobs over three nodes.*killed after it, at each write of the manager",
    "S16",
  ),
  "a disk that is not looked at": edit(
    "src/agent/pull/flights.ts",
    "const problem = there ? undefined : diskProblem(await disk(), 0, thresholdPercent)",
    "const problem = there ? undefined : diskProblem(await disk(), 0, 100)",
    "the disk is full from it on",
    "S16",
  ),
  "a node known by its name": edit(
    "src/controllers/nodeimage/plan.ts",
    'if (nodeImage.nodeUid !== facts.uid) return { do: "delete", jobs: [] }\n',
    "\n",
    "a node that is replaced under its name.*at each call",
  ),
  "pre-caching that marks its nodes": {
    file: "src/controllers/nodeimage/apply.ts",
    edits: [
      {
        find: 'import { nodeImages } from "./resources.ts"',
        replace: 'import { nodeImages, nodes } from "./resources.ts"',
      },
      {
        find: '  if (plan.do === "nothing") return {}\n',
        replace:
          '  if (plan.do === "nothing") return {}\n  await client.patch(nodes, { name: node }, { type: "merge", body: { metadata: { labels: { aim: "yes" } } } })\n',
      },
    ],
    tests: pulls,
    caughtBy: "two jobs over three nodes.*at each write of the agent",
    says: "S18",
  },
  "a pull that goes on when nothing wants it": edit(
    "src/agent/pull/plan.ts",
    "versions.get(id) !== version",
    "versions.has(id) && versions.get(id) !== version",
    "another image in the middle",
  ),
  "a pull that was under way when its agent was killed": edit(
    "src/agent/pull/plan.ts",
    'const waiting: TagState = { ...state, phase: "Waiting" }',
    "const waiting: TagState = state",
    "two jobs over three nodes.*the agent is killed after it, at each call",
  ),
  "credentials that stay": edit(
    "src/core/pulls/edit.ts",
    "    .map(entry => (isOver(entry) ? unsealed(entry) : entry))\n",
    "",
    "two jobs over three nodes.*everything is there",
  ),
  "credentials that are sealed once": edit(
    "src/controllers/nodeimage/plan.ts",
    "const jobs = [...starting, ...stale.filter(({ uid }) => !starting.some(job => job.uid === uid))]",
    "const jobs = [...starting, ...stale.slice(0, 0)]",
    "two jobs over three nodes.*the agent is killed after it, at each call",
  ),
  "a runtime that is away, counted as a failed pull": edit(
    "src/agent/pull/flights.ts",
    'isRuntimeFailure(error, "Unavailable", "SocketDead")',
    'isRuntimeFailure(error, "SocketDead")',
    "uses up no attempt",
  ),
  "a refusal for a moment that ends a job": edit(
    "src/controllers/nodeimage/apply.ts",
    'if (isFailure(outcome.error, "Invalid"))',
    'if (isFailure(outcome.error, "Invalid", "Forbidden"))',
    "ends no job",
  ),
  "a stop that is written when it has begun": ofRestarts(
    "src/agent/recreate/controller.ts",
    'reports: "before"',
    'reports: "after"',
    "a fault in the agent",
  ),
  "a stop that is not repeated when its caller died": ofRestarts(
    "src/agent/recreate/plan.ts",
    'if (found?.is !== "Running") return { is: "Next", state }\n  return',
    'if (found) return { is: "Next", state }\n  return',
    "killed at each moment",
  ),
  "the container that runs now, instead of the recorded one": ofRestarts(
    "src/controllers/containerrecreaterequest/plan.ts",
    'if (forceRecreate && state.phase === "Pending")',
    "if (forceRecreate || !state.isKilled)",
    "at each call to the runtime",
  ),
}
