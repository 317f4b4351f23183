import { setFlagsFromString } from "node:v8"
import { controllersWith, controllers as everyController } from "#controllers/all.ts"
import { isUntouched } from "#controllers/untouched.ts"
import { providersOff } from "#core/canary/routers/index.ts"
import { allowanceOf, parseAllowance } from "#egress/index.ts"
import { createRegistryClient, parseAllowed } from "#registry/index.ts"
import { runsInCluster } from "#runtime/client/in-cluster.ts"
import type { Controller } from "#runtime/controller.ts"
import { usualRenewDeadlineMs } from "#runtime/leader.ts"
import { createLogger, type LogLevel } from "#runtime/log.ts"
import { runManager } from "#runtime/manager.ts"
import { startQuietCollection } from "#runtime/quiet-collection.ts"
import { startWatchdog } from "#runtime/watchdog.ts"
import { connectionOf, type Input, type Run, UsageError } from "../command.ts"
import { readCount } from "../count.ts"
import { kindNamed } from "../kinds.ts"
import { controllerName } from "../manifests/names.ts"
import { checkNamespace } from "../names.ts"
import { readMetrics } from "../serve-metrics.ts"

export const run: Run = async (input, world) => {
  // By default V8 lets the heap grow far beyond what a fleet needs before it collects: docs/benchmarks.md.
  setFlagsFromString("--optimize-for-size")
  const isPod = runsInCluster(world.variables)
  const { clock, random, signal } = world
  const wanted = read(input, isPod, everyController)
  const registry = createRegistryClient({ clock, random, allow: wanted.allowRegistries })
  const { pullsPerRegistry, allowEgress, sharedNamespaces, allowProviders, metricsServer } = wanted
  const surroundings = { registry, pullsPerRegistry, allowEgress, sharedNamespaces, allowProviders, metricsServer }
  const controllers = controllersWith(surroundings).filter(({ name }) =>
    wanted.controllers.some(controller => controller.name === name),
  )
  const { transport, namespace, describe } = await world.reach({ ...connectionOf(input), isUnattended: true })
  const log = createLogger({ level: wanted.logLevel, clock })
  const leaseNamespace = wanted.leaseNamespace ?? (isPod ? namespace : "kube-system")
  log.info("starting", {
    version: world.version,
    server: describe,
    controllers: controllers.map(controller => controller.name),
    ...(wanted.leaderElect && { lease: `${leaseNamespace}/${controllerName}` }),
  })
  // A leader whose event loop stands still has lost its Lease: a standby, or a restart of this pod, must take over.
  const stopWatchdog = startWatchdog({ stillMs: usualRenewDeadlineMs })
  const stopCollection = startQuietCollection()
  const exitCode = await runManager({
    transport,
    controllers,
    leaderElect: wanted.leaderElect
      ? { namespace: leaseNamespace, name: controllerName, trustAbsence: isUntouched }
      : false,
    warm: wanted.warm,
    metrics: wanted.metrics,
    clock,
    random,
    log,
    userAgent: `aim/${world.version}`,
    signal,
  }).finally(() => {
    stopWatchdog()
    stopCollection()
  })
  return { text: "", exitCode: exitCode === 0 ? 0 : 1 }
}

type Wanted = {
  controllers: readonly Controller[]
  leaderElect: boolean
  leaseNamespace: string | undefined
  warm: boolean
  metrics: { host: string; port: number } | undefined
  logLevel: LogLevel
  /** Registries that may be on private addresses. */
  allowRegistries: readonly string[]
  pullsPerRegistry: number
  /** Where objects of a namespace may have us connect, as `NAMESPACE=HOST:PORT`. */
  allowEgress: readonly string[]
  sharedNamespaces: readonly string[]
  /** Providers of Canaries that are off otherwise. */
  allowProviders: readonly string[]
  metricsServer: string | undefined
}

export function read({ options }: Pick<Input, "options">, isPod: boolean, known: readonly Controller[]): Wanted {
  const leaseNamespace = options.leaseNamespace as string | undefined
  return {
    controllers: pick(options.kinds as string | undefined, known),
    leaderElect: options.leaderElect !== false,
    leaseNamespace: leaseNamespace === undefined ? undefined : checkNamespace(leaseNamespace, "--lease-namespace"),
    warm: options.warm !== "false",
    metrics: readMetrics(options, isPod),
    logLevel: options.logLevel as LogLevel,
    allowRegistries: readRegistries((options.allowRegistry as string[] | undefined) ?? []),
    pullsPerRegistry: readCount("--pulls-per-registry", options.pullsPerRegistry as string),
    allowEgress: readEgress((options.allowEgress as string[] | undefined) ?? []),
    sharedNamespaces: ((options.sharedNamespace as string[] | undefined) ?? []).map(name =>
      checkNamespace(name, "--shared-namespace"),
    ),
    allowProviders: readProviders((options.allowProvider as string[] | undefined) ?? []),
    metricsServer: readServer(options.metricsServer as string | undefined),
  }
}

function readProviders(list: readonly string[]): readonly string[] {
  const wrong = list.find(name => !providersOff.includes(name))
  if (wrong === undefined) return list
  throw new UsageError(`--allow-provider: ${wrong} is no provider that is off: write ${providersOff.join(" or ")}`)
}

function readRegistries(list: readonly string[]): readonly string[] {
  for (const text of list) {
    const parsed = parseAllowed(text)
    if (!parsed.ok) throw new UsageError(`--allow-registry: ${parsed.error}`)
  }
  return list
}

function readEgress(list: readonly string[]): readonly string[] {
  for (const text of list) {
    const parsed = parseAllowance(text)
    if (!parsed.ok) throw new UsageError(`--allow-egress: ${parsed.error}`)
  }
  return list
}

/** It is asked for every Canary that names no other, so it may be anywhere. */
function readServer(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const wrong = (what: string) => new UsageError(`--metrics-server: ${JSON.stringify(text.slice(0, 300))}: ${what}`)
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw wrong("write a URL with http:// or https://, such as http://prometheus.monitoring.svc:9090")
  if (url.username || url.password) throw wrong("leave user and password out: they would stand in the pod's arguments")
  const parsed = parseAllowance(allowanceOf(url))
  if (!parsed.ok) throw wrong(parsed.error.slice(parsed.error.indexOf(": ") + 2))
  return text
}

/** By the kind they are for, in any spelling kubectl would take. */
function pick(list: string | undefined, known: readonly Controller[]): readonly Controller[] {
  if (list === undefined) return known
  const wanted = list.split(",").map(word => {
    // A controller without a kind of its own is named by itself.
    const name = (kindNamed(word.trim())?.kind ?? word.trim()).toLowerCase()
    if (known.some(controller => controller.name === name)) return name
    throw new UsageError(
      `--kinds: there is no controller for ${word || '""'}: write ${known.map(each => each.name).join(",")}`,
    )
  })
  return known.filter(({ name }) => wanted.includes(name))
}
