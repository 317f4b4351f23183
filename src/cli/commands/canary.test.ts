import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { approvedAnnotation, approvedByAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import { canaries } from "#controllers/canary/resources.ts"
import { canaryStory, v2, v3 } from "#test/support/canary-story.ts"
import { printed, typeInto } from "#test/support/typed.ts"

// get, status, wait, why, history and plan of Canaries, on a simulated cluster.

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "aim-canary-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
const analysis = { interval: "1m", threshold: 2, stepWeights: [34, 67], metrics }
const name = "request-success-rate"
const [good, bad] = [
  { verdict: "Good", value: 99.5 } as const,
  { verdict: "Bad", value: 90, why: "90 is below 99" } as const,
]

test("a run that waits for a person: each command says so, and wait returns when it is promoted", async () => {
  const story = await canaryStory({ spec: { requireApproval: ["Promotion"], analysis } })
  story.says.checks = [{ name, ...good }]
  await story.until("Initialized")
  const { world } = story
  const says = (words: string) => printed(world, `aim ${words} -n default`)
  expect(await says("status canary/web")).toBe(
    "canary/web -n default Initialized (Deployment web runs what its template says)\n",
  )
  await story.setImage(v2)
  // The Canary says Initialized at this moment: the change is not seen yet, and nothing is over.
  const wait = await typeInto(world, "aim wait canary/web -n default --timeout 2h")
  await story.until("WaitingPromotion")

  expect(await says("status canary/web")).toMatch(
    new RegExp(
      [
        "^canary/web -n default WaitingPromotion, 67 % of the requests \\(AwaitingApproval: .*\\)",
        "  running  registry.example.com/web:1 \\(\\w+\\), 3 pods",
        "  new      registry.example.com/web:2 \\(\\w+\\), 3 pods, 67 % of the requests for 1m",
        "  checks   0 of 2 failed",
        "  metric   request-success-rate Good 99.5, 2 times",
        "  waits    approval \\(Promotion\\): aim approve canary/web -n default\n$",
      ].join("\n"),
    ),
  )
  expect(await says("get canaries")).toMatch(
    /^NAME .*\nweb +NotReady +AwaitingApproval +WaitingPromotion +67 % +Deployment web /,
  )
  expect(await says("why canary/web")).toContain("It waits for a person since ")
  expect(await says("status deploy/web")).toContain("Canary web proves the change before its pods are the workload's")
  expect(await says("history canary/web")).toMatch(/\nr3_\w+ +web:1 +web:2 +2m ago +2m +InProgress\n$/)
  expect(wait.said.at(-1)).toContain("WaitingPromotion")

  const { status } = await story.canary()
  const { id: operation, checksum } = status.run
  const annotations = {
    [approvedAnnotation]: JSON.stringify({ operation, tiers: ["Promotion"], checksum }),
    [approvedByAnnotation]: "jane",
  }
  await world.patch(canaries, "web", { metadata: { annotations } }, "default")
  expect(await wait.outcome()).toEqual({
    text: expect.stringMatching(/^canary\/web -n default Succeeded \(Promoted: /),
    exitCode: 0,
  })
  expect(await says("history canary/web")).toMatch(/\nr3_\w+ +web:1 +web:2 +2m ago +2m +Promoted +Promoted +jane\n$/)
})

test("a bad version: wait fails, and status and why say what has failed", async () => {
  const story = await canaryStory({ spec: { analysis } })
  story.says.checks = [{ name, ...bad }]
  await story.until("Initialized")
  await story.setImage(v2)
  const wait = await typeInto(story.world, "aim wait canary/web -n default --timeout 2h")
  expect(await wait.outcome()).toMatchObject({
    error: { message: expect.stringMatching(/Failed.*\(AnalysisFailed: request-success-rate: 90 is below 99\)$/) },
  })
  await story.world.settle("1m")
  const says = (words: string) => printed(story.world, `aim ${words} -n default`)
  expect(await says("status canary/web")).toMatch(
    /Failed \(Rejected: .*\)\n {2}last run {2}\S+web:2 RolledBack \S+ ago \(AnalysisFailed: request-success-rate: 90 is below 99\)\n$/,
  )
  const why = await says("why canary/web")
  expect(why).toContain("The last run, of registry.example.com/web:2, ended ")
  for (const once of [/failed before/gi, /aim resume/g, /AnalysisFailed: /g]) expect(why.match(once)).toHaveLength(1)

  // A wait right after the next change is about that one, and not about the run that failed.
  story.says.checks = [{ name, ...good }]
  await story.setImage(v3)
  const next = await typeInto(story.world, "aim wait canary/web -n default --timeout 2h")
  expect(await next.outcome()).toMatchObject({ exitCode: 0 })
})

test("plan of a Canary and of a file that is not applied", async () => {
  const story = await canaryStory({ spec: { requireApproval: ["Promotion"], analysis } })
  await story.until("Initialized")
  const { world } = story
  const text = await printed(world, "aim plan canary/web -n default")
  for (const line of [
    "  objects:\n    Service web  there already; clients use it",
    "    Deployment web-REVISION  made for each run",
    "    34 % of the requests, 2 pods beside 3, for 1m\n    67 % of the requests, 3 pods beside 3, for 1m\n    promotion: all requests with 3 pods",
    "  takes: at least 2m",
    "    approval of a person (Promotion), before promotion: aim approve canary/web",
    "  missing: spec.metricsServer: no Prometheus is named",
  ])
    expect(text).toContain(line)

  const file = join(folder, "canary.yaml")
  const write = (spec: object) =>
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: "autoimagemanager.io/v1alpha1",
        kind: "Canary",
        metadata: { name: "second", namespace: "default" },
        spec: {
          targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "other" },
          service: { port: 80 },
          analysis: { interval: "1m", threshold: 2, iterations: 3 },
          ...spec,
        },
      }),
    )
  write({ provider: "linkerd" })
  const planned = await (await typeInto(world, `aim plan -f ${file} -n default`)).atOnce()
  expect(planned).toMatchObject({ exitCode: 1, next: "Nothing was applied." })
  expect("text" in planned && planned.text).toContain(
    "does not work: spec.provider: provider linkerd has no router here",
  )
  expect("text" in planned && planned.text).toContain("there is no Deployment other in this namespace")
  write({})
  const target = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "other" }, spec: { replicas: 5 } }
  writeFileSync(file, `${readFileSync(file, "utf8")}\n---\n${JSON.stringify(target)}\n`)
  const withTarget = await printed(world, `aim plan -f ${file} -n default`)
  expect(withTarget).toContain("100 % of the requests, 5 pods beside 5")
  expect(withTarget).not.toContain("there is no Deployment")
  write({ targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, service: { name: "two", port: 80 } })
  expect(await printed(world, `aim plan -f ${file} -n default`)).toContain("Canary web has the same target")
  write({ analysis: { interval: "1m" } })
  expect(await printed(world, `aim plan -f ${file} -n default`)).toMatch(/canary.yaml:\d+: spec.analysis/)
})
