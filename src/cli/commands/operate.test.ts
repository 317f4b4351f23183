import { describe, expect, test } from "vitest"
import { KubeError } from "#runtime/client/errors.ts"
import { type Run, UsageError } from "../command.ts"
import {
  complete,
  halted,
  operation,
  serviceImage,
  testCluster,
  testWorld,
  tierStatus,
  type Words,
} from "../test-world.ts"
import { run as approve } from "./approve.ts"
import { run as pause } from "./pause.ts"
import { run as resume } from "./resume.ts"
import { run as rollback } from "./rollback.ts"
import { run as setImage } from "./set-image.ts"

const annotation = (word: string) => `autoimagemanager.io/${word}`
const rolling = (over: object = {}): Words => ({
  generation: 4,
  status: { operation: operation("g4", "InProgress"), ...over },
})
const finished = (): Words => {
  const { status, ...words } = complete(4)
  return { ...words, status: { ...status, operation: operation("g4", "Complete"), history: [earlier] } }
}
const earlier = operation("g2", "Complete", {
  images: { "": "registry.example.com/dicom:v1", earlyAccess: "registry.example.com/dicom:v1" },
  endedAt: "2026-01-01T00:05:00Z",
})
const rolledBack: Words = {
  generation: 4,
  conditions: { Complete: ["False", "RolledBack", "3 objects are back"], Halted: ["True", "RolledBack"] },
  status: { operation: operation("g4", "RolledBack"), history: [earlier] },
}

/** One line typed against one ServiceImage `web`: what was answered, and what stands in the cluster then. */
async function type(run: Run, words: string[], given: Words | ReturnType<typeof testCluster>, options: object = {}) {
  const cluster = "client" in given ? given : testCluster(serviceImage("web", given))
  const { world, said, written } = testWorld(cluster)
  const input = { arguments: ["si/web", ...words], options: { timeout: "0", ...options } }
  const answer = await run(input, world)
  const { metadata, spec } = cluster.objects.get("web") as ReturnType<typeof serviceImage>
  const patched = cluster.calls.filter(call => call.includes("patch"))
  return { ...answer, said, written, cluster, annotations: metadata.annotations ?? {}, spec, patched }
}

describe("set-image", () => {
  test("sets the default image and that of a tier, and prints the order of the tiers", async () => {
    const answer = await type(
      setImage,
      ["registry.example.com/dicom:v5", "earlyAccess=registry.example.com/dicom:v6"],
      { ...finished(), spec: { pace: { podsPerSecond: 10 } } },
    )
    expect(answer).toMatchObject({
      exitCode: 0,
      text: [
        "si/web tier earlyAccess: registry.example.com/dicom:v3 → registry.example.com/dicom:v6",
        "si/web the default tier: registry.example.com/dicom:v2 → registry.example.com/dicom:v5\n",
      ].join("\n"),
      next: "Tier earlyAccess (5 objects) goes first, then the default tier (7 objects), at most 10 pods a second.",
      spec: {
        defaultImage: "registry.example.com/dicom:v5",
        tiers: [
          { upgradeTier: "", image: "" },
          { upgradeTier: "earlyAccess", image: "registry.example.com/dicom:v6" },
        ],
      },
      annotations: {},
    })
  })

  test("=IMAGE is the tier without a name, TIER= lets a tier follow the default", async () => {
    for (const word of ["=registry.example.com/dicom:v9", '""=registry.example.com/dicom:v9'])
      expect((await type(setImage, [word], finished())).spec.tiers[0]).toMatchObject({
        upgradeTier: "",
        image: "registry.example.com/dicom:v9",
      })
    const { spec } = await type(setImage, ["=registry.example.com/dicom:v9", "earlyAccess="], finished())
    expect(spec).toMatchObject({
      defaultImage: "registry.example.com/dicom:v2",
      tiers: [
        { upgradeTier: "", image: "registry.example.com/dicom:v9" },
        { upgradeTier: "earlyAccess", image: "" },
      ],
    })
  })

  const busy: Record<string, { given: Words; says: string[] }> = {
    "an operation in progress": {
      given: rolling(),
      says: ["operation g4 is in progress, 3/12 up to date", "aim wait si/web", "aim rollback si/web", "--supersede"],
    },
    "a rollback under way": {
      given: rolling({ operation: operation("g4", "RollingBack") }),
      says: ["operation g4 is being rolled back"],
    },
    "an unobserved generation, though the last one is complete": {
      given: { ...finished(), generation: 5, observed: 4 },
      says: ["no controller has observed generation 5 of si/web yet; the last one observed is 4"],
    },
    "an object that was not observed yet": {
      given: { observed: 0 },
      says: ["no controller has observed generation 1"],
    },
  }
  for (const [name, { given, says }] of Object.entries(busy)) {
    test(`refuses to overtake ${name}`, async () => {
      const cluster = testCluster(serviceImage("web", given))
      const refused = type(setImage, ["dicom:v9"], cluster)
      for (const words of says) await expect(refused).rejects.toThrow(words)
      expect(cluster.calls).toEqual(["get serviceimages web"])
    })
    test(`--supersede overtakes ${name}, and names the generation it overtakes`, async () => {
      const { spec, annotations } = await type(setImage, ["dicom:v9"], given, { supersede: true })
      expect(spec.defaultImage).toBe("dicom:v9")
      expect(annotations).toEqual({ [annotation("supersede")]: String(given.generation ?? 1) })
    })
  }
  test("--supersede says what ends", async () => {
    expect((await type(setImage, ["dicom:v9"], rolling(), { supersede: true })).next).toContain(
      "Operation g4 ends here, as Superseded; objects that it changed get the new images.",
    )
  })
  test("the course names what is unfinished too, and a dry run speaks of it as of a dream", async () => {
    const { next } = await type(setImage, ["dicom:v9"], rolling(), { supersede: true, dryRun: true })
    expect(next).toMatch(/^If it were written:\n/)
    expect(next).toContain("Tier earlyAccess (5 objects) goes first, then the default tier (7 objects)")
  })
  test("a halted rollout can be mended without more ado", async () => {
    const stopped = { ...halted, status: { ...halted.status, operation: operation("g1", "Halted") } }
    const { spec, annotations } = await type(setImage, ["earlyAccess=dicom:v4"], stopped)
    expect(spec.tiers[1]).toMatchObject({ image: "dicom:v4" })
    expect(annotations).toEqual({})
  })

  test("writes nothing when no tier gets another image, also while an operation is in progress", async () => {
    for (const words of [["registry.example.com/dicom:v2"], ["earlyAccess=registry.example.com/dicom:v3"]]) {
      const { text, patched } = await type(setImage, words, rolling())
      expect(text).toBe("si/web: nothing changes, these are its images already\n")
      expect(patched).toEqual([])
    }
  })
  test("says why a default image is of no effect, and how to try again what was rolled back", async () => {
    const spec = {
      tiers: [
        { upgradeTier: "earlyAccess", image: "a:1" },
        { upgradeTier: "", image: "b:1" },
      ],
    }
    expect((await type(setImage, ["c:1"], { ...finished(), spec })).text).toContain(
      "each tier names its own image; name the tier: aim set-image si/web earlyAccess=IMAGE",
    )
    expect((await type(setImage, ["registry.example.com/dicom:v2"], rolledBack)).text).toContain("aim resume si/web")
  })

  test("a write that comes in between is looked at: the check is made again", async () => {
    const cluster = testCluster(serviceImage("web", finished()))
    cluster.meanwhile(() => cluster.put(serviceImage("web", rolling())))
    await expect(type(setImage, ["dicom:v9"], cluster)).rejects.toThrow("operation g4 is in progress")
    expect(cluster.calls).toEqual(["get serviceimages web", "patch serviceimages web", "get serviceimages web"])
    expect(cluster.objects.get("web")).toMatchObject({ spec: { defaultImage: "registry.example.com/dicom:v2" } })
  })
  test("a status that is written all the time is an end too", async () => {
    const cluster = testCluster(serviceImage("web", rolling()))
    for (let i = 0; i < 20; i++) cluster.meanwhile(() => cluster.put(serviceImage("web", rolling())))
    await expect(type(setImage, ["dicom:v9"], cluster, { supersede: true })).rejects.toThrow("nothing was changed")
  })

  test("--dry-run lets the server check and changes nothing", async () => {
    const { text, spec, patched } = await type(setImage, ["dicom:v9"], finished(), { dryRun: true })
    expect(text).toBe(
      "si/web the default tier: registry.example.com/dicom:v2 → dicom:v9 (dry run: nothing was written)\n",
    )
    expect(patched).toEqual(["dry-run patch serviceimages web"])
    expect(spec.defaultImage).toBe("registry.example.com/dicom:v2")
  })
  test("--wait ends as aim wait does, for the generation that was written", async () => {
    await expect(type(setImage, ["dicom:v9"], finished(), { wait: true })).rejects.toThrow(
      "not complete now: si/web NotSeenYet (no controller has observed generation 5 yet",
    )
    const same = await type(setImage, ["registry.example.com/dicom:v2"], finished(), { wait: true })
    expect(same.text).toMatch(/^si\/web Complete 12\/12/)
    expect(same.written).toEqual(["si/web: nothing changes, these are its images already\n"])
  })
  test("reports another repository, a pause and an approval", async () => {
    const tiers = [{ upgradeTier: "earlyAccess", priority: 1, image: "a:1", requireApproval: true }]
    const { next } = await type(setImage, ["earlyAccess=v2"], { ...finished(), spec: { tiers } })
    expect(next).toContain("changes its repository, to docker.io/library/v2")
    expect(next).toContain("Tier earlyAccess may wait for aim approve.")
    expect((await type(setImage, ["dicom:v9"], { ...finished(), spec: { paused: true } })).next).toContain(
      "spec.paused is true: nothing is stamped until aim resume si/web",
    )
  })

  const wrong: Record<string, string> = {
    "UPPER/x:1": "UPPER/x:1: ",
    "earlyAccess=x:": "earlyAccess=x:: ",
    "": '"": the image is empty',
    "a=b=c": "a=b=c: ",
  }
  for (const [word, says] of Object.entries(wrong))
    test(`${word || "nothing"} is wrong usage, before the server is asked`, async () => {
      const cluster = testCluster(serviceImage("web", finished()))
      await expect(type(setImage, [word], cluster)).rejects.toThrow(UsageError)
      await expect(type(setImage, [word], cluster)).rejects.toThrow(says)
      expect(cluster.calls).toEqual([])
    })
  test("two images for one tier are wrong usage", async () => {
    await expect(type(setImage, ["a:1", "a:2"], finished())).rejects.toThrow("the default image is given twice")
  })
  test("a missing tier is reported with the existing ones", async () => {
    await expect(type(setImage, ["earlyaccess=a:1"], finished())).rejects.toThrow(
      'there is no tier earlyaccess (spec.tiers has "", earlyAccess); did you mean earlyAccess?',
    )
    await expect(type(setImage, ["default=a:1"], finished())).rejects.toThrow(
      "the image without a tier is spec.defaultImage",
    )
    await expect(type(setImage, ["=a:1"], { ...finished(), spec: { tiers: [] } })).rejects.toThrow(
      "spec.tiers is empty",
    )
    await expect(type(setImage, ["earlyAccess="], { ...finished(), spec: { defaultImage: "" } })).rejects.toThrow(
      "would have no image, because spec.defaultImage is empty",
    )
  })
  test("what the server refuses is handed on", async () => {
    const cluster = testCluster(serviceImage("web", finished()))
    cluster.fail("patch", new KubeError("Invalid", "the image of tier early changes while…", { status: 422 }))
    await expect(type(setImage, ["dicom:v9"], cluster)).rejects.toThrow("the image of tier early changes")
  })
})

describe("pause and resume", () => {
  test("pausing stops what has not begun, and says what finishes", async () => {
    expect(await type(pause, [], rolling())).toMatchObject({
      text: "paused: si/web\n",
      next: "Still finishing: 2 objects of tier earlyAccess. Nothing else is stamped until aim resume si/web",
      spec: { paused: true },
    })
  })
  test("both are content the second time", async () => {
    const again = await type(pause, [], { ...rolling(), spec: { paused: true } })
    expect(again).toMatchObject({ text: "already paused: si/web\n", exitCode: 0, patched: [] })
    expect(await type(resume, [], rolling())).toMatchObject({ text: "not paused: si/web\n", exitCode: 0, patched: [] })
  })
  test("resuming says what goes on, at what pace", async () => {
    const paused = { ...rolling(), spec: { paused: true, pace: { podsPerSecond: 1 } } }
    expect(await type(resume, [], paused)).toMatchObject({
      text: "resumed: si/web\n",
      next: "Tier earlyAccess (5 objects) goes first, then the default tier (7 objects), at most 1 pod a second.",
      spec: { paused: false },
    })
  })
  test("a rollout that waits for something else is reported as such", async () => {
    expect((await type(resume, [], halted)).next).toMatch(/^si\/web Halted .*\nTo continue, fix the failure/)
    const tiers = [tierStatus({ upgradeTier: "earlyAccess", total: 5, is: "Waiting", reason: "AwaitingApproval" })]
    expect((await type(resume, [], rolling({ tierStatus: tiers }))).next).toBe(
      "It waits for approval: aim approve si/web",
    )
  })
  test("what was rolled back is tried again, as a new operation", async () => {
    const answer = await type(resume, [], { ...rolledBack, spec: { paused: true } })
    expect(answer).toMatchObject({
      text: "resumed: si/web, operation g4 once more\n",
      next: expect.stringMatching(
        /^It was rolled back, and starts again with the same images, as a new operation.*\nTier earlyAccess/,
      ),
      annotations: { [annotation("retry")]: "g4" },
      spec: { paused: false },
    })
    const again = await type(resume, [], answer.cluster)
    expect(again).toMatchObject({ text: "already resumed: si/web, operation g4 once more\n" })
    expect(again.patched).toHaveLength(1)
  })
})

describe("approve", () => {
  const waits = (tier: string, total: number) =>
    tierStatus({ upgradeTier: tier, total, is: "InProgress", reason: "AwaitingApproval" })
  const tiers = [
    {
      upgradeTier: "earlyAccess",
      priority: 1,
      image: "registry.example.com/dicom:v3",
      requireApproval: true,
      steps: [{ percent: 10 }],
    },
    { upgradeTier: "", priority: 0, image: "", requireApproval: true },
    { upgradeTier: "free", priority: -1, image: "" },
  ]
  const waiting: Words = { ...rolling({ tierStatus: [waits("earlyAccess", 5)] }), spec: { tiers } }
  const approvedIn = (annotations: Record<string, string>) => JSON.parse(annotations[annotation("approved")]!)

  test("approves what waits now, and says what that is", async () => {
    const answer = await type(approve, [], waiting)
    expect(answer).toMatchObject({
      text: "approved: tier earlyAccess of si/web, operation g4 (5 objects to registry.example.com/dicom:v3)\n",
      next: "Tier earlyAccess starts now, with 10% of its objects.",
    })
    expect(approvedIn(answer.annotations)).toEqual({ operation: "g4", tiers: ["earlyAccess"] })
  })
  test("adds to what was approved of the same operation, and forgets another one", async () => {
    const given = (text: string) => ({ ...waiting, annotations: { [annotation("approved")]: text } })
    const same = await type(approve, [""], given('{"operation":"g4","tiers":["earlyAccess"]}'))
    expect(approvedIn(same.annotations)).toEqual({ operation: "g4", tiers: ["earlyAccess", ""] })
    expect(same.next).toBe("The default tier starts when the tiers of higher priority are complete.")
    for (const old of ['{"operation":"g3","tiers":["x"]}', "nonsense"])
      expect(approvedIn((await type(approve, [], given(old))).annotations).tiers).toEqual(["earlyAccess"])
  })
  test("says twice what was approved, and writes it once", async () => {
    const { cluster } = await type(approve, [], waiting)
    cluster.put({
      ...serviceImage("web", { ...waiting, status: rolling().status! }),
      metadata: cluster.objects.get("web")!.metadata,
    })
    const again = await type(approve, [], cluster)
    expect(again.text).toMatch(/^already approved: tier earlyAccess/)
    expect(again.patched).toEqual(["patch serviceimages web"])
  })
  test("a tier that needs no approval is reported as such", async () => {
    expect(await type(approve, ["free"], waiting)).toMatchObject({
      text: expect.stringMatching(/^needs no approval: tier free/),
      patched: [],
    })
  })

  const refused: Record<string, { words: string[]; given: Words; says: string }> = {
    "a tier that is not there": { words: ["erlyAccess"], given: waiting, says: "did you mean earlyAccess?" },
    "a generation that was not observed yet": {
      words: [],
      given: { ...waiting, generation: 5, observed: 4 },
      says: "no controller has observed generation 5",
    },
    "what has no operation": { words: [], given: {}, says: "has no operation yet" },
    "nothing, and names what comes later": {
      words: [],
      given: { ...waiting, status: rolling().status! },
      says: 'aim approve si/web earlyAccess ""',
    },
    "nothing at all": { words: [], given: rolling(), says: "no unfinished tier of operation g4 has requireApproval" },
  }
  for (const [name, { words, given, says }] of Object.entries(refused))
    test(`refuses ${name}`, async () => {
      const cluster = testCluster(serviceImage("web", given))
      await expect(type(approve, words, cluster)).rejects.toThrow(says)
      expect(cluster.calls).toEqual(["get serviceimages web"])
    })
})

describe("rollback", () => {
  test("asks for the last operation to be taken back, and says what stays to be done", async () => {
    expect(
      await type(rollback, [], { ...rolling({ history: [earlier], operation: operation("g4", "Halted") }) }),
    ).toMatchObject({
      text: "rolling back: operation g4 of si/web\n",
      next: [
        "Only objects that g4 changed return to their former image (5 objects at most), the lowest priority first.",
        "Afterwards the spec still names the new images: set the images to keep (aim set-image si/web registry.example.com/dicom:v1 earlyAccess=registry.example.com/dicom:v1), or try again (aim resume si/web).",
      ].join("\n"),
      annotations: { [annotation("rollback")]: "g4" },
    })
  })
  test("also a complete one; and says so when it is asked, or done, already", async () => {
    expect((await type(rollback, [], finished(), { operation: "g4" })).annotations).toEqual({
      [annotation("rollback")]: "g4",
    })
    expect(await type(rollback, [], rolledBack)).toMatchObject({
      text: "already rolled back: operation g4 of si/web\n",
      patched: [],
    })
    for (const given of [
      rolling({ operation: operation("g4", "RollingBack") }),
      { ...rolling(), annotations: { [annotation("rollback")]: "g4" } },
    ])
      expect(await type(rollback, [], given)).toMatchObject({
        text: "already rolling back: operation g4 of si/web\n",
        patched: [],
      })
  })
  test("an earlier one cannot be taken back, but its images can be brought", async () => {
    await expect(type(rollback, [], finished(), { operation: "g2" })).rejects.toThrow(
      "operation g2 of si/web is over; only the last one can be rolled back, which is g4\nto set its images: aim set-image si/web registry.example.com/dicom:v1 earlyAccess=registry.example.com/dicom:v1",
    )
    const { status, ...words } = finished()
    const forgotten = { ...words, status: { ...status, history: [{ ...earlier, images: {} }] } }
    await expect(type(rollback, [], forgotten, { operation: "g2" })).rejects.toThrow("no longer recorded")
    const nasty = { ...words, status: { ...status, history: [{ ...earlier, images: { "": "x:1;rm -rf ~" } }] } }
    await expect(type(rollback, [], nasty, { operation: "g2" })).rejects.toThrow("no longer recorded")
    await expect(type(rollback, [], finished(), { operation: "g9" })).rejects.toThrow(
      "aim history si/web lists earlier operations",
    )
  })
  test("an operation that was not observed or not started is not rolled back", async () => {
    await expect(type(rollback, [], { ...finished(), generation: 5, observed: 4 })).rejects.toThrow("generation 5")
    await expect(type(rollback, [], {})).rejects.toThrow("nothing to roll back")
  })
  test("--wait ends when it is back, whatever stood there before the controller saw it", async () => {
    const cluster = testCluster(serviceImage("web", finished()))
    const { world, said, clock } = testWorld(cluster)
    const done = rollback({ arguments: ["si/web"], options: { wait: true, timeout: "10m" } }, world)
    await clock.advance(0)
    cluster.put(serviceImage("web", rolling({ operation: operation("g4", "RollingBack") })))
    await clock.advance(0)
    cluster.put(serviceImage("web", rolledBack))
    expect(await done).toMatchObject({ text: "si/web RolledBack 3/12 as before (3 objects are back)\n", exitCode: 0 })
    expect(said.at(-1)).toMatch(/^si\/web RollingBack/)
  })
  test("--wait fails when another operation takes its place", async () => {
    const cluster = testCluster(serviceImage("web", finished()))
    const { world, clock } = testWorld(cluster)
    const done = rollback({ arguments: ["si/web"], options: { wait: true, timeout: "10m" } }, world)
    const failed = expect(done).rejects.toThrow("si/web InProgress")
    await clock.advance(0)
    cluster.put(serviceImage("web", rolling({ operation: operation("g5", "InProgress") })))
    await failed
  })
})

describe("--dry-run lets the server check and writes nothing:", () => {
  const cases: Record<string, { run: Run; words: string[]; given: Words; says: string }> = {
    pause: { run: pause, words: [], given: rolling(), says: "paused: si/web" },
    resume: { run: resume, words: [], given: { ...rolling(), spec: { paused: true } }, says: "resumed: si/web" },
    rollback: { run: rollback, words: [], given: finished(), says: "rolling back: operation g4 of si/web" },
  }
  for (const [name, { run, words, given, says }] of Object.entries(cases))
    test(name, async () => {
      const { text, next, patched, annotations, spec } = await type(run, words, given, { dryRun: true, wait: true })
      expect(text).toBe(`${says} (dry run: nothing was written)\n`)
      expect(next).toMatch(/^If it were written:\n/)
      expect(patched).toEqual(["dry-run patch serviceimages web"])
      expect(annotations).toEqual({})
      expect(spec.paused).toBe(given.spec && "paused" in given.spec ? given.spec.paused : undefined)
    })
})
