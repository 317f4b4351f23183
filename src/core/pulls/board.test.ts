import fc from "fast-check"
import { expect, test } from "vitest"
import { PullBoard, type PullJob } from "./board.ts"
import type { Entry, NodeFacts, NodeImageFacts } from "./node-facts.ts"

const image = { name: "registry.example.com/app", tag: "1", host: "registry.example.com" }
const job = (key: string, fields: Partial<PullJob> = {}): PullJob => ({
  key,
  uid: `uid-${key}`,
  namespace: key.split("/")[0]!,
  image,
  priority: 0,
  hasSecrets: false,
  selection: { by: "All" },
  ...fields,
})
const node = (name: string, fields: Partial<NodeFacts> = {}): NodeFacts => ({
  resourceVersion: "1",
  uid: `uid-${name}`,
  labels: {},
  isReady: true,
  isWindows: false,
  ...fields,
})
const nodeImage = (name: string, entries: Entry[] = [], fields: Partial<NodeImageFacts> = {}): NodeImageFacts => ({
  resourceVersion: "1",
  uid: `image-${name}`,
  nodeUid: `uid-${name}`,
  publicKey: "",
  entries,
  ...fields,
})
const entry = (owners: string[], phase: Entry["phase"], fields: Partial<Entry> = {}): Entry => ({
  name: image.name,
  tag: image.tag,
  version: 0,
  owners: owners.map(key => `uid-${key}`),
  askedAt: 0,
  phase,
  reason: "",
  message: "",
  attempts: 0,
  transfer: undefined,
  ttlSeconds: undefined,
  digest: "",
  sealed: [],
  ...fields,
})

function boardOf(names: readonly string[], perRegistry = 20) {
  const woken = { jobs: new Set<string>(), nodes: new Set<string>() }
  const board = new PullBoard(perRegistry, {
    job: key => woken.jobs.add(key),
    node: name => woken.nodes.add(name),
  })
  for (const name of names) {
    board.setNode(name, node(name), 0)
    board.setNodeImage(name, nodeImage(name), 0)
  }
  return { board, woken }
}

test("a decided node counts at once, and until its NodeImage shows something else", () => {
  const { board, woken } = boardOf(["a", "b"])
  board.setJob(job("shop/app"), 0)
  board.start("shop/app", board.pick("shop/app", 1, 0))
  expect(board.view("shop/app")).toMatchObject({ Starting: 1, Waiting: 1, startable: 1 })
  expect([...woken.nodes]).toEqual(["a"])
  board.setNodeImage("a", nodeImage("a", [], { resourceVersion: "2" }), 0) // not there yet
  expect(board.view("shop/app")).toMatchObject({ Starting: 1 })
  board.setNodeImage("a", nodeImage("a", [entry(["shop/app"], undefined)]), 0)
  expect(board.view("shop/app")).toMatchObject({ Starting: 0, Active: 1, oldestUnanswered: 0 })
})

test("S17: what was said of a replaced node of the same name is worth nothing", () => {
  const { board } = boardOf(["a"])
  board.setJob(job("shop/app"), 0)
  board.setNodeImage("a", nodeImage("a", [entry(["shop/app"], "Succeeded")]), 0)
  expect(board.view("shop/app")).toMatchObject({ Succeeded: 1 })
  board.setNode("a", node("a", { uid: "another" }), 0)
  expect(board.view("shop/app")).toMatchObject({ Succeeded: 0, Waiting: 1, startable: 0 })
})

test("a job with pull secrets waits for the node's key", () => {
  const { board } = boardOf(["a"])
  board.setJob(job("shop/app", { hasSecrets: true }), 0)
  expect(board.view("shop/app")).toMatchObject({ Waiting: 1, startable: 0 })
  board.setNodeImage("a", nodeImage("a", [], { publicKey: "key" }), 0)
  expect(board.view("shop/app")).toMatchObject({ Waiting: 1, startable: 1 })
})

test("an entry is wanted by a job that exists, selects the node and names this image", () => {
  const { board } = boardOf(["a"])
  board.setJob(job("shop/app"), 0)
  expect(board.isWanted("uid-shop/app", "a", image)).toBe(true)
  expect(board.isWanted("uid-shop/app", "a", { ...image, tag: "2" })).toBe(false)
  expect(board.isWanted("uid-shop/app", "b", image)).toBe(false)
  expect(board.isWanted("uid-other", "a", image)).toBe(false)
  board.dropJob("shop/app", 0)
  expect(board.isWanted("uid-shop/app", "a", image)).toBe(false)
})

test("bytes are summed over the nodes that report them, and leave with the pull", () => {
  const { board } = boardOf(["a", "b", "c"])
  board.setJob(job("shop/app"), 0)
  const report = (name: string, phase: Entry["phase"], transfer?: Entry["transfer"]) =>
    board.setNodeImage(name, nodeImage(name, [entry(["shop/app"], phase, { transfer })]), 0)
  report("a", undefined)
  expect(board.view("shop/app")).toMatchObject({ Active: 1, answering: 0, transfer: undefined })
  report("a", "Pulling", { doneBytes: 10, totalBytes: 100, pulls: 1 })
  report("b", "Pulling", { doneBytes: 30, totalBytes: 300, pulls: 2 })
  report("c", "Waiting")
  expect(board.view("shop/app")).toMatchObject({
    answering: 3,
    transfer: { doneBytes: 40, totalBytes: 400, nodes: 2, sharedNodes: 1 },
  })
  report("a", "Pulling", { doneBytes: 60, pulls: 1 })
  expect(board.view("shop/app")?.transfer).toEqual({ doneBytes: 90, nodes: 2, sharedNodes: 1 })
  report("b", "Succeeded")
  expect(board.view("shop/app")?.transfer).toEqual({ doneBytes: 60, nodes: 1, sharedNodes: 0 })
  board.setNode("a", undefined, 0)
  expect(board.view("shop/app")).toMatchObject({ answering: 1, transfer: undefined })
})

test("a Windows node is given nothing, and is named where it was asked for", () => {
  const { board } = boardOf(["a"])
  board.setNode("w", node("w", { isWindows: true }), 0)
  board.setJob(job("shop/app", { selection: { by: "Names", names: ["a", "w"] } }), 0)
  expect(board.view("shop/app")).toMatchObject({ desired: 1, unknown: ["w"] })
})

type Step =
  | { do: "job" | "drop" | "start" | "missing"; job: number }
  | { do: "tell"; node: number; phase: number; owners: number }
  | { do: "node"; node: number; ready: boolean }
  | { do: "gone"; node: number }

const steps = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constantFrom("job" as const, "drop" as const, "start" as const, "missing" as const),
      job: fc.nat(2),
    }),
    fc.record({ do: fc.constant("tell" as const), node: fc.nat(3), phase: fc.nat(5), owners: fc.nat(7) }),
    fc.record({ do: fc.constant("node" as const), node: fc.nat(3), ready: fc.boolean() }),
    fc.record({ do: fc.constant("gone" as const), node: fc.nat(3) }),
  ),
  { maxLength: 60 },
)
const phases = [undefined, "Waiting", "Pulling", "Succeeded", "Failed"] as const
const names = ["a", "b", "c", "d"]
const keys = ["x/1", "x/2", "y/1"]

test("counts are those of a plain recount, and pulls under way never pass the registry's limit by our own decisions", () => {
  fc.assert(
    fc.property(steps, (list: Step[]) => {
      const limit = 3
      const { board } = boardOf(names, limit)
      for (const step of list) {
        const inFlight = board.budget.inFlight(image.host)
        if (step.do === "job") board.setJob(job(keys[step.job]!), 0)
        if (step.do === "drop") board.dropJob(keys[step.job]!, 0)
        if (step.do === "missing") board.failUnanswered(keys[step.job]!, 0, 0)
        if (step.do === "start") {
          const key = keys[step.job]!
          board.start(key, board.pick(key, 2, 0))
          expect(board.budget.inFlight(image.host)).toBeLessThanOrEqual(Math.max(limit, inFlight))
        }
        if (step.do === "node") board.setNode(names[step.node]!, node(names[step.node]!, { isReady: step.ready }), 0)
        if (step.do === "gone") board.setNode(names[step.node]!, undefined, 0)
        if (step.do === "tell") {
          const owners = keys.filter((_, index) => step.owners & (1 << index))
          const phase = phases[step.phase]
          const transfer = phase === "Pulling" ? { doneBytes: 1, totalBytes: 2, pulls: 1 } : undefined
          const entries = step.phase === 5 ? [] : [entry(owners, phase, { transfer })]
          board.setNodeImage(names[step.node]!, nodeImage(names[step.node]!, entries), 0)
        }
        for (const key of keys) {
          const view = board.view(key)
          if (!view) continue
          const { desired, Waiting, Starting, Active, Succeeded, Failed, startable, failures } = view
          expect(Waiting + Starting + Active + Succeeded + Failed).toBe(desired)
          expect(Math.min(Waiting, Starting, Active, Succeeded, Failed)).toBeGreaterThanOrEqual(0)
          expect(startable).toBeLessThanOrEqual(Waiting)
          expect(failures).toHaveLength(Failed)
          expect(view.answering).toBeLessThanOrEqual(Active)
          expect(view.transfer?.nodes ?? 0).toBeLessThanOrEqual(view.answering)
          expect(view.transfer?.doneBytes ?? 0).toBe(view.transfer?.nodes ?? 0)
          const starting = names.filter(name => board.starting(name).some(each => each.key === key))
          expect(starting).toHaveLength(Starting)
        }
      }
    }),
  )
})

test("a refused write leaves the decision, is shown, and is over when the NodeImage shows the image", () => {
  const { board } = boardOf(["node-0", "node-1"], 1)
  board.setJob(job("shop/app"), 0)
  board.start("shop/app", board.pick("shop/app", 2, 0))
  board.refuse("shop/app", "node-0", "the role is being changed", 0)
  expect(board.view("shop/app")).toMatchObject({
    Starting: 1,
    Failed: 0,
    refusal: { node: "node-0", message: "the role is being changed" },
  })
  expect(board.starting("node-0")).toHaveLength(1)
  expect(board.budget.inFlight(image.host)).toBe(1)
  board.setNodeImage("node-0", nodeImage("node-0", [entry(["shop/app"], "Pulling")]), 0)
  expect(board.view("shop/app")).toMatchObject({ Active: 1, refusal: undefined })
})

test("a node that tries again after a failure is active, and its reason is known", () => {
  const { board } = boardOf(["a"])
  board.setJob(job("shop/one"), 0)
  board.setNodeImage("a", nodeImage("a", [entry(["shop/one"], "Waiting", { reason: "NotFound", attempts: 1 })]), 1)
  expect(board.view("shop/one")).toMatchObject({
    Active: 1,
    failures: [],
    retries: [{ node: "a", reason: "NotFound" }],
  })
  board.setNodeImage("a", nodeImage("a", [entry(["shop/one"], "Succeeded", { attempts: 2 })]), 2)
  expect(board.view("shop/one")).toMatchObject({ Succeeded: 1, retries: [] })
})

test("an agent that never gave a key is missing after a minute, and no longer once it has", () => {
  const { board } = boardOf(["a"])
  board.setJob(job("shop/one", { hasSecrets: true }), 5)
  expect(board.view("shop/one")).toMatchObject({ Waiting: 1, startable: 0, oldestUnanswered: 5 })
  board.setNode("a", node("a", { labels: { zone: "b" } }), 8)
  expect(board.view("shop/one")).toMatchObject({ oldestUnanswered: 5 })
  board.failUnanswered("shop/one", 5, 60_005)
  expect(board.view("shop/one")).toMatchObject({ Failed: 1, failures: [{ node: "a", reason: "AgentMissing" }] })
  board.setNodeImage("a", nodeImage("a", [], { publicKey: "key" }), 70_000)
  expect(board.view("shop/one")).toMatchObject({ Waiting: 1, startable: 1, oldestUnanswered: undefined })
})
