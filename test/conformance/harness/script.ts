/**
 * The language of conformance cases. A case is a script of requests; what a floor answers to each of them is its
 * transcript, and two floors agree on a case when their transcripts, normalised, are equal.
 */

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind are asked for; the suite knows none of their schemas.
export type Json = any

/** Whose work a case looks at: groups the differences in the report. */
export type Area = "registry" | "schema" | "kinds" | "controllers" | "kubelet" | "auth"

export type Case = {
  name: string
  area: Area
  run: (on: Script) => Promise<void>
  /** Leave out managed fields: they are kept where no controller writes at its own time. */
  withoutManagedFields: boolean
  /** Leave out the status of workloads and what their controllers note, which come in their own time. */
  withoutStatus: boolean
  /** Hashes are compared as they are and not as "the first, the second". */
  withHashes: boolean
  /** The case makes pods that run, so its namespace is emptied when it has ended. */
  runsPods: boolean
}

export type PatchType = "json" | "merge" | "strategic" | "apply"

/** A name of the table in `resources.ts`, `pods/status` for a subresource, or a path that begins with a slash. */
export type Resource = string

export type Query = Record<string, string | number | boolean>

export type Sent = { query?: Query; body?: Json; headers?: Record<string, string>; text?: string }

export type Answer = { status: number; headers: Record<string, string | undefined>; body: Json }

export type Verbs = {
  send(method: string, path: string, sent?: Sent): Promise<Answer>
  create(resource: Resource, object: Json, query?: Query): Promise<Json>
  get(resource: Resource, name: string, query?: Query): Promise<Json>
  list(resource: Resource, query?: Query): Promise<Json>
  replace(resource: Resource, object: Json, query?: Query): Promise<Json>
  patch(resource: Resource, name: string, type: PatchType, body: Json, query?: Query): Promise<Json>
  /** Server-side apply as `query.fieldManager`, or as "applier". */
  apply(resource: Resource, object: Json, query?: Query): Promise<Json>
  remove(resource: Resource, name: string, options?: Json, query?: Query): Promise<Json>
}

export type Event = { type: string; object: Json }

export type Watch = {
  /** Every event so far. */
  readonly events: readonly Event[]
  /** Waits for this many further events, and records them. */
  next(count: number): Promise<Event[]>
  /** Waits for the first event that is looked for; records nothing. */
  until(what: string, wanted: (event: Event) => boolean): Promise<Event>
  /** Waits until the server ends it, and records the remaining events. */
  end(): Promise<Event[]>
  close(): void
}

export type Kubectl = { code: number; stdout: string; stderr: string }
export type KubectlOptions = {
  stdin?: string
  /** What `kubectl edit` calls. */
  editor?: string
  /** Ends it after so long, for what would go on for ever. */
  forMs?: number
  /** Called with all that it has written so far, whenever it writes. */
  onWritten?: (written: { stdout: string; stderr: string }) => void
  /** Ends it when this is true of what it has written. */
  endsWhen?: (stdout: string) => boolean
  /** What of its output is compared, where only a part of it is the product's business. */
  only?: (output: Kubectl) => Json
}

export type Script = Verbs & {
  /** A word of this case alone: the name of its namespace, and part of whatever it creates outside of it. */
  readonly id: string
  readonly namespace: string
  /** Host of the registry whose images the nodes can pull. */
  readonly registry: string
  /** Host of one that answers with the fault that the repository's name asks for. */
  readonly faulty: string
  /** The same verbs for what only prepares a case: not in the transcript, and a refusal ends the case. */
  readonly quietly: Verbs
  /** Sends a request and records nothing, not even a refusal: for answers of which only a part is compared, by `note`. */
  unrecorded: Verbs["send"]
  path(resource: Resource, name?: string): string
  watch(resource: Resource, query?: Query): Promise<Watch>
  /** Asks again until the answer is neither undefined nor false. Not in the transcript. */
  until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T>
  /** Waits until an object is as wanted; undefined stands for one that is gone. */
  untilObject(resource: Resource, name: string, wanted: (object: Json) => unknown): Promise<Json>
  /** Writes something into the transcript: what a case computes from answers that differ from run to run. */
  note(what: string, value: Json): void
  /** `kubectl` in a folder of the case's own, with the case's namespace unless the arguments name others. */
  kubectl(args: string[], options?: KubectlOptions): Promise<Kubectl>
  /** A file in that folder. */
  file(name: string, content: string | Json): string
  pause(ms: number): Promise<void>
}

type Options = { withManagedFields?: boolean; withStatus?: boolean; withHashes?: boolean; runsPods?: boolean }
type Declared = ((on: Script) => Promise<void>) | (Options & { run: (on: Script) => Promise<void> })

/** Cases of one topic, each named by the sentence it holds the floors to. */
export function topic(name: string, area: Area, declared: Record<string, Declared>, options: Options = {}): Case[] {
  return Object.entries(declared).map(([sentence, each]) => {
    const own = typeof each === "function" ? { run: each } : each
    const {
      withManagedFields = true,
      withStatus = true,
      withHashes = false,
      runsPods = false,
      run,
    } = { ...options, ...own }
    const without = { withoutManagedFields: !withManagedFields, withoutStatus: !withStatus }
    return { name: `${name}: ${sentence}`, area, run, ...without, withHashes, runsPods }
  })
}
