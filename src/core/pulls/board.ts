import type { Instant } from "#lib/instant.ts"
import { type LabelSelector, selects } from "#lib/label-selector.ts"
import { type ImageName, splitImage } from "./image-name.ts"
import { type Entry, isFinished, type NodeFacts, type NodeImageFacts } from "./node-facts.ts"
import { type PodPlace, PodPlaces } from "./pod-places.ts"
import { RegistryBudget } from "./registry-budget.ts"
import { type JobTransfer, type Transfer, TransferSums } from "./transfer.ts"

/** What the board needs of a job. */
export type PullJob = {
  readonly key: string
  readonly uid: string
  readonly namespace: string
  readonly image: ImageName
  readonly priority: number
  readonly hasSecrets: boolean
  readonly selection: Selection
}

export type Selection =
  | { readonly by: "All" }
  | { readonly by: "Names"; readonly names: readonly string[] }
  | { readonly by: "Labels"; readonly selector: LabelSelector }
  | { readonly by: "Pods"; readonly selector: LabelSelector }

/**
 * How it stands with one job on one node. `Starting`: decided, and not yet seen in the NodeImage. The reasons of a
 * failure are the agent's, or ours where no agent has a say.
 */
export type Task = {
  readonly state: "Waiting" | "Starting" | "Active" | "Succeeded" | "Failed"
  readonly reason?: string
  readonly message?: string
  /** What the node has fetched so far. */
  readonly transfer?: Transfer
  /** Of one that no agent has answered: when it was asked for, or when the key of the agent was first missed. */
  readonly unansweredSince?: Instant
}

type Counts = Record<Task["state"], number>

type Tracked = {
  job: PullJob
  tasks: Map<string, Task>
  counts: Counts
  /** Waiting, on a node that can be given it. In the order in which they are given. */
  startable: Set<string>
  /** The oldest first. */
  unanswered: Map<string, Instant>
  failures: Map<string, Task>
  /** Active, after an attempt that failed. */
  retries: Map<string, Task>
  /** Starting, and the server refused the write that would begin it. */
  refusals: Map<string, Task>
  /** Active, and the agent has answered: short pulls end before that. */
  answering: number
  transfers: TransferSums
}

/** What a plan reads of one job: counts and the first few of each, whatever the number of nodes. */
export type JobView = Readonly<Counts> & {
  readonly desired: number
  readonly startable: number
  readonly failures: readonly FailedPull[]
  /** Nodes that have failed and try again. */
  readonly retries: readonly FailedPull[]
  /** Names of the spec that are no Linux nodes of the cluster; the first few. */
  readonly unknown: readonly string[]
  readonly oldestUnanswered: Instant | undefined
  /** Nodes whose agent has answered and has not ended: a short pull ends before it is reported. */
  readonly answering: number
  readonly transfer: JobTransfer | undefined
  /** The first node whose NodeImage could not be written, and what the server said. It is tried again. */
  readonly refusal?: { readonly node: string; readonly message: string } | undefined
}

export type FailedPull = { readonly node: string; readonly reason: string; readonly message: string }

export type Wakers = { job(key: string): void; node(name: string): void }

const waiting: Task = { state: "Waiting" }
const failuresShown = 10
const unknownShown = 3

/**
 * Every job and how it stands on each of its nodes, updated with each event: an event of a NodeImage costs as much as
 * it has entries. Nothing here is written anywhere: a process that starts anew reads the same from the NodeImages.
 */
export class PullBoard {
  readonly budget: RegistryBudget
  readonly #wake: Wakers
  readonly #jobs = new Map<string, Tracked>()
  readonly #byUid = new Map<string, Tracked>()
  readonly #nodes = new Map<string, NodeFacts>()
  readonly #nodeImages = new Map<string, NodeImageFacts>()
  readonly #pods = new PodPlaces()
  /** Jobs that were decided to start on a node, by node. */
  readonly #starting = new Map<string, Set<string>>()
  /** When the event happened that is being handled. */
  #now: Instant = 0

  constructor(pullsPerRegistry: number, wake: Wakers) {
    this.budget = new RegistryBudget(pullsPerRegistry, wake.job)
    this.#wake = wake
  }

  /** A job is new or has another spec. Tasks of the same image on the same node go on. */
  setJob(job: PullJob, now: Instant): void {
    this.#now = now
    const before = this.#jobs.get(job.key)
    if (before && isSameWork(before.job, job)) {
      before.job = job
      return
    }
    if (before) this.dropJob(job.key, now)
    const tracked: Tracked = {
      job,
      tasks: new Map(),
      counts: { Waiting: 0, Starting: 0, Active: 0, Succeeded: 0, Failed: 0 },
      startable: new Set(),
      unanswered: new Map(),
      failures: new Map(),
      retries: new Map(),
      refusals: new Map(),
      answering: 0,
      transfers: new TransferSums(),
    }
    this.#jobs.set(job.key, tracked)
    this.#byUid.set(job.uid, tracked)
    const { selection } = job
    if (selection.by === "Pods")
      this.#pods.follow(job.uid, job.namespace, selection.selector, node => this.#select(tracked, node))
    else for (const node of selection.by === "Names" ? selection.names : this.#nodes.keys()) this.#select(tracked, node)
  }

  /** The job is gone, or over: what it asked nodes for and has not got is taken back. */
  dropJob(key: string, now: Instant): void {
    this.#now = now
    const tracked = this.#jobs.get(key)
    if (!tracked) return
    const { job, tasks } = tracked
    this.#jobs.delete(key)
    this.#byUid.delete(job.uid)
    if (job.selection.by === "Pods") this.#pods.unfollow(job.uid, job.namespace)
    this.budget.leave(job.image.host, job, now)
    for (const [node, { state }] of tasks) {
      if (state === "Starting") this.#unstart(tracked, node)
      if (state === "Active" || state === "Starting") this.#wake.node(node)
    }
  }

  setNode(name: string, facts: NodeFacts | undefined, now: Instant): void {
    this.#now = now
    if (facts) this.#nodes.set(name, facts)
    else this.#nodes.delete(name)
    for (const tracked of this.#jobs.values()) this.#select(tracked, name)
  }

  setPod(key: string, before: PodPlace | undefined, after: PodPlace | undefined, now: Instant): void {
    this.#now = now
    this.#pods.set(key, before, after)
  }

  setNodeImage(name: string, facts: NodeImageFacts | undefined, now: Instant): void {
    this.#now = now
    const before = this.#nodeImages.get(name)
    if (facts) this.#nodeImages.set(name, facts)
    else this.#nodeImages.delete(name)
    for (const entry of before?.entries ?? []) if (!same(facts, entry)) this.#release(name, entry)
    for (const entry of facts?.entries ?? []) {
      if (isFinished(entry)) this.#release(name, entry)
      else this.budget.use(hostOf(entry), idOf(name, entry))
      const told = before && same(before, entry)
      if (entry.reason === "RateLimited" && (told?.attempts ?? 0) < entry.attempts)
        this.budget.slowDown(hostOf(entry), now)
    }
    const isOther =
      before?.uid !== facts?.uid || before?.publicKey !== facts?.publicKey || before?.nodeUid !== facts?.nodeUid
    const concerned = isOther
      ? this.#jobs.values()
      : new Set(
          [...(before?.entries ?? []), ...(facts?.entries ?? [])].flatMap(({ owners }) =>
            owners.flatMap(uid => this.#byUid.get(uid) ?? []),
          ),
        )
    for (const tracked of concerned) if (tracked.tasks.has(name)) this.#refresh(tracked, name, isOther)
  }

  view(key: string): JobView | undefined {
    const tracked = this.#jobs.get(key)
    if (!tracked) return undefined
    const { job, counts, tasks, startable, failures, retries, unanswered, refusals, answering, transfers } = tracked
    const [refused] = firstOf(refusals, 1)
    return {
      ...counts,
      desired: tasks.size,
      startable: startable.size,
      failures: failedPulls(failures),
      retries: failedPulls(retries),
      unknown:
        job.selection.by === "Names"
          ? job.selection.names.filter(name => !this.#isFit(name)).slice(0, unknownShown)
          : [],
      oldestUnanswered: unanswered.values().next().value,
      answering,
      transfer: transfers.all,
      refusal: refused && { node: refused[0], message: refused[1].message ?? "" },
    }
  }

  /** The next nodes of a job, within what its registry grants it now. */
  pick(key: string, most: number, now: Instant): string[] {
    const tracked = this.#jobs.get(key)
    if (!tracked) return []
    const { job, startable } = tracked
    const wants = Math.max(0, Math.min(most, startable.size))
    const granted = this.budget.ask(job.image.host, job, wants, now)
    return [...firstOf(startable, Math.min(granted, wants))]
  }

  /** Decided: these nodes are given the image. Counts against the budgets from now on. */
  start(key: string, nodes: readonly string[]): void {
    const tracked = this.#jobs.get(key)
    for (const node of tracked ? nodes : []) {
      const { image } = tracked!.job
      this.budget.use(image.host, idOf(node, image), key)
      this.#starting.set(node, (this.#starting.get(node) ?? new Set()).add(key))
      this.#set(tracked!, node, { state: "Starting" })
      this.#wake.node(node)
    }
  }

  /** The server refused to give the node the image. The decision stands, because the write is tried again. */
  refuse(key: string, node: string, message: string, now: Instant): void {
    this.#now = now
    const tracked = this.#jobs.get(key)
    if (tracked?.tasks.get(node)?.state === "Starting") this.#set(tracked, node, { state: "Starting", message })
  }

  /** The node cannot be given the image, or its agent does not answer. */
  fail(key: string, node: string, why: { reason: string; message: string }, now: Instant): void {
    this.#now = now
    const tracked = this.#jobs.get(key)
    if (!tracked?.tasks.has(node)) return
    this.#unstart(tracked, node)
    this.#set(tracked, node, { state: "Failed", ...why })
    this.#wake.job(key)
    this.#wake.node(node)
  }

  /**
   * Fails the nodes that were asked for the image before this instant and whose agent has not answered. Returns how
   * many.
   */
  failUnanswered(key: string, askedBefore: Instant, now: Instant): number {
    let failed = 0
    for (const [node, since] of [...(this.#jobs.get(key)?.unanswered ?? [])]) {
      if (since > askedBefore) break
      this.fail(key, node, { reason: "AgentMissing", message: "no agent has answered for a minute" }, now)
      failed++
    }
    return failed
  }

  /** The jobs that are to be started on a node. */
  starting(node: string): PullJob[] {
    return [...(this.#starting.get(node) ?? [])].flatMap(key => this.#jobs.get(key)?.job ?? [])
  }

  jobOf(uid: string): PullJob | undefined {
    return this.#byUid.get(uid)?.job
  }

  /** Whether an entry of a NodeImage is still wanted by this owner. */
  isWanted(uid: string, node: string, entry: Pick<Entry, "name" | "tag">): boolean {
    const tracked = this.#byUid.get(uid)
    const task = tracked?.tasks.get(node)
    return tracked !== undefined && task !== undefined && isOf(entry, tracked.job.image) && !isOurs(task)
  }

  /** Whether the node's NodeImage is the one that belongs to the node as it is now. */
  isCurrent(node: string): boolean {
    const facts = this.#nodeImages.get(node)
    return facts !== undefined && facts.nodeUid === this.#nodes.get(node)?.uid
  }

  #select(tracked: Tracked, node: string): void {
    const isSelected = this.#isFit(node) && this.#selects(tracked.job, node)
    if (isSelected) this.#refresh(tracked, node, true)
    else if (tracked.tasks.has(node)) this.#remove(tracked, node)
  }

  #isFit(node: string): boolean {
    return this.#nodes.get(node)?.isWindows === false
  }

  #selects({ selection, uid, namespace }: PullJob, node: string): boolean {
    if (selection.by === "All") return true
    if (selection.by === "Names") return selection.names.includes(node)
    if (selection.by === "Labels") return selects(selection.selector, this.#nodes.get(node)?.labels)
    return this.#pods.has(uid, namespace, node)
  }

  #remove(tracked: Tracked, node: string): void {
    const task = tracked.tasks.get(node)!
    this.#unstart(tracked, node)
    this.#forget(tracked, node, task)
    tracked.tasks.delete(node)
    this.#wake.job(tracked.job.key)
    this.#wake.node(node)
  }

  /** Reads the task from the NodeImage. `isOther`: the node or its NodeImage is another one, or has another key. */
  #refresh(tracked: Tracked, node: string, isOther: boolean): void {
    const { job } = tracked
    const before = tracked.tasks.get(node)
    const entries = this.isCurrent(node) ? this.#nodeImages.get(node)!.entries : []
    const entry = entries.find(each => isOf(each, job.image) && each.owners.includes(job.uid))
    if (entry) this.#hasStarted(tracked, node)
    // Until the NodeImage shows it, our own decision stands; a failure that only we know of ends with a new agent.
    const stays = before?.state === "Starting" || (before && isOurs(before) && !isOther)
    const task = entry ? taskOf(entry) : stays ? before : this.#waitingOn(node, job, before)
    this.#set(tracked, node, task)
  }

  /** Credentials are sealed to a key of the node's agent. Where there is none, the agent is waited for like an answer. */
  #waitingOn(node: string, { hasSecrets }: PullJob, before: Task | undefined): Task {
    const isReady = this.#nodes.get(node)?.isReady === true && this.isCurrent(node)
    if (!hasSecrets || !isReady || this.#nodeImages.get(node)!.publicKey !== "") return waiting
    return { state: "Waiting", unansweredSince: before?.unansweredSince ?? this.#now }
  }

  #set(tracked: Tracked, node: string, task: Task): void {
    const before = tracked.tasks.get(node)
    if (before) this.#forget(tracked, node, before)
    tracked.tasks.set(node, task)
    tracked.counts[task.state]++
    addTo(tracked, task, 1)
    if (task.state === "Waiting" && this.#canStart(tracked.job, node)) tracked.startable.add(node)
    if (task.unansweredSince !== undefined) tracked.unanswered.set(node, task.unansweredSince)
    if (task.state === "Failed") tracked.failures.set(node, task)
    if (task.state === "Active" && task.reason !== undefined) tracked.retries.set(node, task)
    if (task.state === "Starting" && task.message !== undefined) tracked.refusals.set(node, task)
    this.#wake.job(tracked.job.key)
  }

  #forget(tracked: Tracked, node: string, task: Task): void {
    tracked.counts[task.state]--
    addTo(tracked, task, -1)
    tracked.startable.delete(node)
    tracked.unanswered.delete(node)
    tracked.failures.delete(node)
    tracked.retries.delete(node)
    tracked.refusals.delete(node)
  }

  #canStart({ hasSecrets }: PullJob, node: string): boolean {
    const facts = this.#nodes.get(node)
    return (
      facts?.isReady === true && this.isCurrent(node) && (!hasSecrets || this.#nodeImages.get(node)!.publicKey !== "")
    )
  }

  #unstart(tracked: Tracked, node: string): void {
    if (this.#hasStarted(tracked, node)) this.#release(node, tracked.job.image)
  }

  /** Returns whether it was about to. */
  #hasStarted({ job }: Tracked, node: string): boolean {
    const jobs = this.#starting.get(node)
    const was = jobs?.delete(job.key) ?? false
    if (jobs?.size === 0) this.#starting.delete(node)
    return was
  }

  /** Unless another job is about to start the same image there. */
  #release(node: string, image: Pick<Entry, "name" | "tag">): void {
    const isStarting = this.starting(node).some(job => isOf(image, job.image))
    if (!isStarting) this.budget.release(hostOf(image), idOf(node, image), this.#now)
  }
}

const isOf = (entry: Pick<Entry, "name" | "tag">, { name, tag }: Pick<ImageName, "name" | "tag">) =>
  entry.name === name && entry.tag === tag

const same = (facts: NodeImageFacts | undefined, entry: Entry) => facts?.entries.find(each => isOf(each, entry))

const hostOf = ({ name }: Pick<Entry, "name">) => splitImage(name)?.host ?? ""
const idOf = (node: string, { name, tag }: Pick<Entry, "name" | "tag">) => `${node} ${name} ${tag}`

/** A failure that stands in no NodeImage. */
const isOurs = ({ state, reason }: Task) => state === "Failed" && ourReasons.has(reason ?? "")
const ourReasons = new Set(["AgentMissing", "Refused", "NodeFull"])

const failedPulls = (tasks: ReadonlyMap<string, Task>): FailedPull[] =>
  [...firstOf(tasks, failuresShown)].map(([node, { reason = "", message = "" }]) => ({ node, reason, message }))

function taskOf(entry: Entry): Task {
  const { phase, reason, message, askedAt, attempts, transfer } = entry
  if (phase === undefined) return { state: "Active", unansweredSince: askedAt }
  if (phase === "Succeeded") return { state: "Succeeded" }
  if (phase === "Failed") return { state: "Failed", reason, message }
  const failure = attempts > 0 && reason !== "" && { reason, message }
  return { state: "Active", ...failure, ...(transfer && { transfer }) }
}

function addTo(tracked: Tracked, { state, unansweredSince, transfer }: Task, sign: 1 | -1): void {
  if (state === "Active" && unansweredSince === undefined) tracked.answering += sign
  if (transfer) tracked.transfers.add(transfer, sign)
}

const isSameWork = (a: PullJob, b: PullJob) =>
  a.uid === b.uid &&
  isOf(a.image, b.image) &&
  a.hasSecrets === b.hasSecrets &&
  JSON.stringify(a.selection) === JSON.stringify(b.selection)

function* firstOf<T>(items: Iterable<T>, most: number): Generator<T> {
  let left = most
  for (const item of items) {
    if (left-- <= 0) return
    yield item
  }
}
