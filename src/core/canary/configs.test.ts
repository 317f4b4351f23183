import { describe, expect, test } from "vitest"
import { retryAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { CanaryStatus } from "#api/v1alpha1/canary/index.ts"
import { absent, snapshotSuffix } from "./config-refs.ts"
import { configStatusOf } from "./configs.ts"
import type { Decision } from "./decision.ts"
import { decide } from "./run.ts"
import type { ConfigRead, ConfigsSeen, SetSeen, Sight } from "./sight.ts"
import { aRun, calm, canaryOf, oldSet, running, workload } from "./test-sight.ts"

const key = "configmap/settings"
const refs = [{ key, isOptional: false }]
const ended = {
  id: "r1",
  source: aRun.source,
  target: aRun.target,
  result: "RolledBack",
  reason: "AnalysisFailed",
  startedAt: aRun.startedAt,
  endedAt: aRun.startedAt,
} as const

type World = {
  read?: ConfigRead
  isOptional?: boolean
  /** Of the running revision; undefined: it was never recorded. */
  tracked?: Record<string, string> | undefined
  status?: Partial<CanaryStatus>
  annotations?: Record<string, string>
  mark?: string
  snapshot?: ReturnType<ConfigsSeen["snapshot"]>
  takesSnapshots?: boolean
  workload?: Partial<Sight["workload"]>
  set?: Partial<SetSeen>
}

/** The running revision read checksum 1, and so does every look unless it is said otherwise. */
function seen(given: World = {}): Sight {
  const { read = { checksum: "1" }, isOptional = false, mark = "", snapshot = "There", takesSnapshots = true } = given
  const tracked = Object.hasOwn(given, "tracked") ? given.tracked : { [key]: "1" }
  const named = { refs: refs.map(ref => ({ ...ref, isOptional })) }
  const base = calm()
  const configs = [{ workload: "web", hash: "old", snapshots: {} }]
  return {
    ...base,
    canary: canaryOf(
      {},
      { phase: "Initialized", ...(tracked && { trackedConfigs: tracked, configs }), ...given.status },
      given.annotations,
    ),
    workload: { ...base.workload!, configs: { ...named, mark }, ...given.workload },
    sets: [{ ...oldSet, configs: { ...named, mark: "" }, ...given.set }],
    configs: {
      read: () => read,
      takesSnapshots,
      snapshot: (_, checksum) => (checksum === absent ? "There" : snapshot),
      snapshots: [],
      checksumWith: next => (next ? `marked ${next}` : "aaaa"),
    },
  }
}

const changed = { read: { checksum: "2" } }
const held = { isPaused: true, hold: { isStanding: false } } as const
const act = ({ act: is, reason }: Decision) => [is?.do ?? "", reason]

describe("between runs", () => {
  const cases: Record<string, [World, [string, string]]> = {
    "nothing changed": [{}, ["", "Initialized"]],
    "a change is written into the template": [changed, ["mark", "Started"]],
    "also where the workload stands paused": [{ ...changed, workload: { ...held, hold: { isStanding: true } } }, ["mark", "Started"]],
    "not where its owner paused it": [{ ...changed, workload: { isPaused: true, hold: undefined } }, ["", "Initialized"]],
    "not where it has no pods": [{ ...changed, workload: { size: 0 } }, ["", "Initialized"]],
    "an object that cannot be read is no change": [{ read: "Unreadable" }, ["", "Initialized"]],
    "nor one that is not read yet": [{ read: "Unread" }, ["", "Initialized"]],
    "nor one that must be there and is not": [{ read: "Missing" }, ["", "Initialized"]],
    "one that may be missing and is deleted is": [{ read: "Missing", isOptional: true }, ["mark", "Started"]],
    "one that was missing and is made is": [{ tracked: { [key]: absent }, isOptional: true }, ["mark", "Started"]],
    "one that its owner leaves out is not": [{ read: "Ignored" }, ["", "Initialized"]],
    "a Secret without a grant is not": [{ read: "NotGranted" }, ["", "Initialized"]],
    "what is read for the first time is what was promoted": [{ ...changed, tracked: undefined }, ["", "Initialized"]],
    "Services follow the revision that runs before anything is concluded": [{ ...changed, set: { hash: "native" } }, ["services", "Adopting"]],
    "a snapshot comes first": [{ snapshot: "None" }, ["snapshot", "Adopting"]],
    "of the new content too": [{ ...changed, snapshot: "None" }, ["snapshot", "Adopting"]],
    "none where no policy reads it": [{ snapshot: "None", takesSnapshots: false }, ["", "Initialized"]],
    "none where the name is taken": [{ snapshot: "Taken" }, ["", "Initialized"]],
    "a held change of the template gets it too": [{ ...changed, workload: { ...held, checksum: "bbbb" } }, ["mark", "Started"]],
    "the mark goes when the configuration is again the one that runs": [{ mark: "2", workload: { ...held, checksum: "bbbb", configs: { refs, mark: "2" } } }, ["mark", "Started"]],
  } // biome-ignore format: a table
  for (const [name, [given, wanted]] of Object.entries(cases))
    test(name, () => expect(act(decide(seen(given)))).toEqual(wanted))

  const markOf = (sight: Sight) => {
    const { act: is } = decide(sight)
    return is?.do === "mark" ? is.mark : undefined
  }
  const failed: World = {
    ...changed,
    status: { phase: "Failed", lastAppliedSpec: `marked ${markOf(seen(changed))}`, history: [ended] },
  }

  test("configuration that failed before is not written again", () => {
    expect(act(decide(seen(failed)))).toEqual(["", "Rejected"])
    expect(decide(seen(failed)).message).toContain("this template with this configuration failed before")
  })

  test("unless a person wants it tried again, or it is another one", () => {
    expect(act(decide(seen({ ...failed, annotations: { [retryAnnotation]: "r1" } })))).toEqual(["mark", "Started"])
    expect(act(decide(seen({ ...failed, read: { checksum: "3" } })))).toEqual(["mark", "Started"])
  })

  test("the run has what it proves, and says so", () => {
    const mark = markOf(seen(changed))!
    const template = { ...held, checksum: `marked ${mark}`, configs: { refs, mark } }
    const { run } = decide(seen({ ...changed, mark, workload: template }))
    expect([run?.configs, run?.message]).toEqual([{ [key]: "2" }, `${key} changed`])
    const sight = seen({ ...changed, mark, workload: template })
    const other = { ...sight, configs: { ...sight.configs!, checksumWith: () => "bbbb" } }
    expect(decide(other).run?.message).toBe(`the template and ${key} changed`)
  })
})

describe("in a run", () => {
  const inRun = (given: World, run = { configs: { [key]: "2" } as Record<string, string> }): Sight => {
    const { configs, workload: named, sets } = seen(given)
    const sight = running(20, { run, status: { trackedConfigs: { [key]: "1" }, configs: [{ workload: "web", hash: "old", snapshots: {} }] } })
    return {
      ...sight,
      configs,
      workload: { ...workload, configs: named!.configs },
      sets: [{ ...sight.sets[0]!, configs: sets[0]!.configs }, sight.sets[1]!],
    }
  } // biome-ignore format: as short as it is

  test("the same configuration lets it go on", () => {
    expect(decide(inRun(changed)).run?.reason).not.toBe("Restarted")
    for (const read of ["Unread", "Unreadable", "Missing"] as const)
      expect(decide(inRun({ read })).run?.reason).not.toBe("Restarted")
  })

  test("another one ends it, and another run follows", () => {
    expect(decide(inRun({ read: { checksum: "3" } })).run).toMatchObject({
      reason: "Restarted",
      message: `${key} changed during the run`,
    })
  })

  test("what the run could not read when it began is no change", () => {
    expect(decide(inRun(changed, { configs: {} })).run?.reason).not.toBe("Restarted")
  })

  test("new pods of both revisions read what belongs to each", () => {
    const sight = inRun(changed)
    const run = sight.canary.status!.run!
    const suffix = (checksum: string) => snapshotSuffix("web", checksum)
    expect(configStatusOf(sight, { run })).toEqual({
      trackedConfigs: { [key]: "1" },
      configs: [
        { workload: "web", hash: "old", snapshots: { settings: suffix("1") } },
        { workload: "web-bbbb", snapshots: { settings: suffix("2") } },
      ],
    })
  })

  test("what is promoted is recorded with its checksums, whatever was read since", () => {
    const sight = inRun({ read: { checksum: "3" } })
    const sets = [sight.sets[0]!, { ...sight.sets[1]!, owner: "user" as const }]
    const promoted = { ...ended, result: "Promoted", reason: "Promoted" } as const
    expect(configStatusOf({ ...sight, sets }, { ended: promoted })).toMatchObject({
      trackedConfigs: { [key]: "2" },
      configs: [{ workload: "web-bbbb", hash: "new" }],
    })
  })
})

describe("what the status says", () => {
  test("a snapshot that is not there is not promised to pods", () => {
    for (const snapshot of ["None", "Taken"] as const)
      expect(configStatusOf(seen({ snapshot }), {}).configs).toEqual([{ workload: "web", hash: "old", snapshots: {} }])
  })

  test("a process that has not read yet keeps what was written", () => {
    const settings = snapshotSuffix("web", "1")
    const status = { configs: [{ workload: "web", hash: "old", snapshots: { settings } }] }
    const sight = seen({ read: "Unread", snapshot: "Unread", status })
    expect(configStatusOf(sight, {})).toEqual({ trackedConfigs: { [key]: "1" }, ...status })
  })

  test("what is not tracked, and why", () => {
    expect(configStatusOf(seen({ read: "NotGranted" }), {})).toEqual({
      untrackedConfigs: [{ name: key, reason: "ConfigNotTracked" }],
    })
    expect(configStatusOf(seen({ read: "Unreadable" }), {}).untrackedConfigs).toEqual([
      { name: key, reason: "ConfigUnreadable" },
    ])
    expect(configStatusOf(seen(), {}).untrackedConfigs).toBeUndefined()
  })
})
