import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { stringify } from "yaml"
import { type Ground, whole } from "./floor.ts"
import { pathOf } from "./resources.ts"
import type {
  Answer,
  Case,
  Event,
  Json,
  Kubectl,
  KubectlOptions,
  PatchType,
  Script,
  Sent,
  Verbs,
  Watch,
} from "./script.ts"

/** One step of a script and what was answered. */
export type Entry = { step: string; answer: Json }

/** What a floor answered to a script, in order; `trouble` when the script could not be followed to its end. */
export type Transcript = { entries: Entry[]; trouble?: string }

const contentTypes: Record<PatchType, string> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
}

/** Runs a case on one floor, in a namespace of its own. */
export async function runCase(ground: Ground, each: Case, id: string): Promise<Transcript> {
  const entries: Entry[] = []
  const ended = new AbortController()
  const folder = mkdtempSync(join(tmpdir(), "aim-conformance-"))
  const record = (step: string, answer: Json) => entries.push({ step, answer })
  const on = script(ground, { id, folder, record, signal: ended.signal })
  let trouble: string | undefined
  try {
    await on.quietly.send("POST", "/api/v1/namespaces", { body: { metadata: { name: id } } })
    // What a namespace is born with on a real cluster; a case that lists must not race with it.
    for (const [kind, name] of [
      ["serviceaccounts", "default"],
      ["configmaps", "kube-root-ca.crt"],
    ] as const)
      await on.untilObject(kind, name, object => object)
    await each.run(on)
  } catch (error) {
    trouble = messageOf(error)
  } finally {
    ended.abort(new Error("the case has ended"))
    rmSync(folder, { recursive: true, force: true })
    if (each.runsPods) {
      const signal = AbortSignal.timeout(30_000)
      const path = `/api/v1/namespaces/${id}`
      await ground
        .send({ method: "DELETE", path, headers: {}, signal })
        .then(whole)
        .catch(() => {})
    }
  }
  return trouble === undefined ? { entries } : { entries, trouble }
}

class Trouble extends Error {
  override name = "Trouble"
}

const messageOf = (error: unknown): string => {
  if (error instanceof Trouble) return error.message
  return error instanceof Error
    ? `${error.name}: ${error.message}\n${error.stack?.split("\n").slice(1, 4).join("\n")}`
    : String(error)
}

type Context = { id: string; folder: string; record: (step: string, answer: Json) => void; signal: AbortSignal }

function script(ground: Ground, { id, folder, record, signal }: Context): Script {
  const namespace = id

  async function ask(
    method: string,
    path: string,
    { query = {}, body, headers = {}, text }: Sent = {},
  ): Promise<Answer> {
    const asked = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)])).toString()
    const content = text ?? (body === undefined ? undefined : JSON.stringify(body))
    const raw = await ground.send({
      method,
      path: asked ? `${path}?${asked}` : path,
      headers: {
        accept: "application/json",
        "user-agent": "conformance/1.0",
        ...(content !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      body: content,
      signal: AbortSignal.any([signal, AbortSignal.timeout(40_000)]),
    })
    return whole(raw)
  }

  const path = (resource: string, name?: string) => pathOf(resource, namespace, name)

  function verbs(send: Verbs["send"]): Verbs {
    const body = async (answer: Promise<Answer>) => (await answer).body
    const options = (query: Sent["query"]) => (query === undefined ? {} : { query })
    return {
      send,
      create: (resource, object, query) => {
        const [, name] = resource.split("/").length > 1 && !resource.startsWith("/") ? [0, object.metadata?.name] : []
        return body(send("POST", path(resource, name), { body: object, ...options(query) }))
      },
      get: (resource, name, query) => body(send("GET", path(resource, name), options(query))),
      list: (resource, query) => body(send("GET", path(resource), options(query))),
      replace: (resource, object, query) =>
        body(send("PUT", path(resource, object.metadata.name), { body: object, ...options(query) })),
      patch: (resource, name, type, patch, query) =>
        body(
          send("PATCH", path(resource, name), {
            body: patch,
            headers: { "content-type": contentTypes[type] },
            ...options(query),
          }),
        ),
      apply: (resource, object, query = {}) =>
        body(
          send("PATCH", path(resource, object.metadata.name), {
            body: object,
            headers: { "content-type": contentTypes.apply },
            query: { fieldManager: "applier", ...query },
          }),
        ),
      remove: (resource, name, removal, query) =>
        body(send("DELETE", path(resource, name), { ...(removal && { body: removal }), ...options(query) })),
    }
  }

  const spoken = verbs(async (method, path, sent) => {
    const answer = await ask(method, path, sent)
    record(stepName(method, path, sent), shown(answer))
    return answer
  })
  const quietly = verbs(async (method, path, sent) => {
    const answer = await ask(method, path, sent)
    if (answer.status >= 400)
      throw new Trouble(`${stepName(method, path, sent)}: ${answer.status} ${answer.body?.message ?? answer.body}`)
    return answer
  })

  async function until<T>(what: string, question: () => Promise<T | undefined | false>): Promise<T> {
    const deadline = Date.now() + ground.patienceMs
    for (;;) {
      const answer = await question()
      if (answer !== undefined && answer !== false) return answer
      if (Date.now() > deadline) throw new Trouble(`waited in vain until ${what}`)
      await pause(100)
    }
  }

  async function untilObject(resource: string, name: string, wanted: (object: Json) => unknown): Promise<Json> {
    let last: Json
    try {
      return await until(`${resource} ${name} is as wanted`, async () => {
        const { status, body } = await ask("GET", path(resource, name))
        last = status === 404 ? undefined : body
        return wanted(last) ? { object: last } : undefined
      }).then(({ object }) => object)
    } catch (error) {
      if (!(error instanceof Trouble)) throw error
      throw new Trouble(`${error.message}; it is\n${stringify({ status: last?.status, message: last?.message })}`)
    }
  }

  async function watch(resource: string, query: Sent["query"] = {}): Promise<Watch> {
    const closing = new AbortController()
    const asked = new URLSearchParams(
      Object.entries({ watch: 1, ...query }).map(([key, value]) => [key, String(value)]),
    ).toString()
    const raw = await ground.send({
      method: "GET",
      path: `${path(resource)}?${asked}`,
      headers: { accept: "application/json", "user-agent": "conformance/1.0" },
      signal: AbortSignal.any([signal, closing.signal]),
      longLived: true,
    })
    if (raw.status !== 200) record(`WATCH ${resource} ${asked}`, shown(await whole(raw)))
    const events: Event[] = []
    let isOver = raw.status !== 200
    const reading = async () => {
      let rest = ""
      for await (const chunk of raw.body) {
        rest += Buffer.from(chunk).toString("utf8")
        const lines = rest.split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) if (line) events.push(JSON.parse(line))
      }
    }
    if (!isOver)
      reading()
        .catch(() => {})
        .finally(() => {
          isOver = true
        })
    let told = 0
    const tell = (to: number) => {
      const news = events.slice(told, to)
      told = to
      record(`WATCH ${resource} ${asked}`, news)
      return news
    }
    return {
      events,
      async next(count) {
        const wanted = told + count
        await until(
          `a watch of ${resource} tells ${count} events more`,
          async () => events.length >= wanted || isOver,
        ).catch(error => {
          tell(events.length)
          throw error
        })
        return tell(Math.min(wanted, events.length))
      },
      until: (what, wanted) => until(what, async () => events.find(wanted)),
      async end() {
        await until(`a watch of ${resource} ends`, async () => isOver)
        return tell(events.length)
      },
      close: () => closing.abort(new Error("closed by the script")),
    }
  }

  function file(name: string, content: Json): string {
    const place = join(folder, name)
    mkdirSync(dirname(place), { recursive: true })
    writeFileSync(place, typeof content === "string" ? content : stringify(content))
    return name
  }

  async function kubectl(args: string[], options: KubectlOptions = {}): Promise<Kubectl> {
    const { only = output => output } = options
    const output = await runKubectl(ground, withNamespace(args, namespace), { ...options, folder, signal })
    record(`kubectl ${args.join(" ")}`, only(output))
    return output
  }

  return {
    ...spoken,
    id,
    namespace,
    registry: ground.registry,
    faulty: ground.faulty,
    quietly,
    unrecorded: ask,
    path,
    watch,
    until,
    untilObject,
    note: record,
    kubectl,
    file,
    pause,
  }
}

const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

function stepName(method: string, path: string, { query = {}, headers = {} }: Sent = {}): string {
  const asked = Object.entries(query).map(([key, value]) => `${key}=${value}`)
  const type = /(json|merge|strategic|apply)(-merge)?-patch/.exec(headers["content-type"] ?? "")?.[1]
  return [method, path, ...(type ? [type] : []), ...asked].join(" ")
}

const mattering = ["warning", "retry-after", "location"]

function shown({ status, headers, body }: Answer): Json {
  const said = mattering.filter(name => headers[name] !== undefined).map(name => [name, headers[name]])
  const type = headers["content-type"]
  return {
    status,
    ...(said.length > 0 && { headers: Object.fromEntries(said) }),
    ...(type !== "application/json" && { type }),
    body,
  }
}

const withNamespace = (args: string[], namespace: string) =>
  args.some(arg => /^(-n|--namespace|-A|--all-namespaces|config)$/.test(arg)) ? args : ["-n", namespace, ...args]

async function runKubectl(
  { kubectl, kubeconfig, home }: Ground,
  args: string[],
  {
    folder,
    stdin = "",
    editor = "true",
    forMs,
    onWritten,
    endsWhen,
    signal,
  }: KubectlOptions & { folder: string; signal: AbortSignal },
): Promise<Kubectl> {
  const env = { PATH: process.env.PATH, HOME: home, KUBECONFIG: kubeconfig, KUBE_EDITOR: editor, TZ: "UTC" }
  const child = spawn(kubectl, args, { cwd: folder, env, signal, killSignal: "SIGKILL" })
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", chunk => {
    stdout += chunk
    onWritten?.({ stdout, stderr })
    if (endsWhen?.(stdout)) child.kill("SIGKILL")
  })
  child.stderr.setEncoding("utf8").on("data", chunk => {
    stderr += chunk
    onWritten?.({ stdout, stderr })
  })
  child.stdin.on("error", () => {})
  child.stdin.end(stdin)
  const timer = setTimeout(() => child.kill("SIGKILL"), forMs ?? 120_000)
  const code = await new Promise<number>((resolve, reject) => {
    child.once("error", reject)
    child.once("close", number => resolve(number ?? -1))
  })
  clearTimeout(timer)
  return { code, stdout, stderr }
}
