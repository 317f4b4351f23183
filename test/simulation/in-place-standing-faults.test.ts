import { describe, expect, test } from "vitest"
import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import { createLag } from "#cluster-sim/faults/lag.ts"
import { settingAnnotations } from "#core/in-place/names.ts"
import { begin, expectAtRest, kinds } from "#test/scenarios/in-place-standing.ts"
import { identity, isRolledOut, v1, v2 } from "#test/support/in-place-story.ts"
import { faults, keepAlive } from "./fates.ts"
import { judge } from "./invariants/invariants.ts"

// A fault at each write of an update behind a standing hold, and of a rolling update for which the hold is lent. S21–S24:
// no pod is re-created in place, none is drained for ever, and the hold stands in the end.

/** Of an update of three pods with a gate. */
const writes = 22
/** Of a rolling update: the hold is lent, and stands again. */
const lentWrites = 3
const withGate = { hasGate: true, annotations: { [settingAnnotations.graceSeconds]: "2" }, isAlone: true }

for (const [offset, kind] of kinds.entries())
  describe(`a fault at each write to a ${kind} behind a standing hold`, () => {
    // In the long form each fault at each write; in the short form each at one, and another one for each kind.
    const every = process.env.AIM_RUNS === undefined ? writes : 1
    for (const [index, [name, make]] of Object.entries(faults).entries())
      test(name, async () => {
        for (let at = 1 + ((index * 7 + offset * 3) % every); at <= writes; at += every) {
          const { story, before } = await begin({ kind, ...withGate })
          const fate = make(nth(isDecision, at), story.world.clock, nth(isDecision, at + 1))
          keepAlive(story.world.clock, given => story.update(given), fate)
          await story.world.settle("10s")
          await story.setImage({ web: v2 })
          await story.says("Completed", "1h")
          await expectAtRest(story, v2)
          judge(story.world.record)
          expect([at, (await story.pods()).map(identity)]).toEqual([at, before.map(identity)])
          expect([at, isRolledOut(await story.workload())]).toEqual([at, true])
        }
      })

    test("of a rolling update for which the hold is lent", async () => {
      const most = process.env.AIM_RUNS === undefined ? 1 : lentWrites
      for (const [index, [name, make]] of Object.entries(faults).entries())
        for (let round = 0; round < most; round++) {
          const at = 1 + ((index + offset + round) % lentWrites)
          const { story } = await begin({ kind, isAlone: true })
          const fate = make(nth(isDecision, at), story.world.clock, nth(isDecision, at + 1))
          keepAlive(story.world.clock, given => story.update(given), fate)
          await story.world.settle("10s")
          await story.change({ spec: { containers: [{ name: "web", env: [{ name: "A", value: "1" }] }] } })
          await story.says("NotInPlace", "1h")
          await expectAtRest(story, v1).catch(error => {
            throw new Error(`${name}: ${at}: ${error.message}`)
          })
          judge(story.world.record)
        }
    })

    test("a controller of its own that is behind, and a release right after the end", async () => {
      const lag = createLag()
      const { story, before } = await begin({ kind, lags: { [`${kind.toLowerCase()}-controller`]: lag } })
      lag.behind(5000)
      await story.setImage({ web: v2 })
      await story.says("Completed", "1h")
      await story.patch({ metadata: { annotations: { "autoimagemanager.io/update-strategy": "Recreate" } } })
      await story.free("1h")
      await story.world.settle("2m")
      expect((await story.pods()).map(identity)).toEqual(before.map(identity))
    })
  })
