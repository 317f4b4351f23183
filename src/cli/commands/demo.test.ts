import { expect, test } from "vitest"
import { runProgram } from "#test/support/program.ts"
import { stories } from "../demo/all.ts"
import { commands } from "../tree.ts"
import { narrator } from "./demo.ts"

const sentencesOf = {
  upgrade: [
    "24 tenants sign up",
    "Halted 15/24",
    "tier late were not touched",
    "continues by itself",
    "24 of 24 tenants run v2",
    "To try next",
  ],
  canary: [
    "40 tenants sign up",
    "(AllFailed: ",
    "others were not touched",
    "(ImagePullFailed, All)",
    "v2: not found",
    "RolledBack 40/40",
    "All 40 tenants have v1",
    "the same ones as before",
    "Soaking",
    "40 of 40 tenants run v2.1",
    "To try next",
  ],
  "registry-outage": [
    "2 run registry.example.com/shop/web:v1",
    "goes down. The pods that run do not need it",
    "4 run mirror.example.com/shop/web:v1, 2 run registry.example.com/shop/web:v1",
    "connection refused",
    "4 of the 4 that failed are the same pods",
    "The Deployment still says registry.example.com/shop/web:v1",
    "NotFoundAnywhere",
    "6 of 6 pods run v2, all from registry.example.com again",
    "To try next",
  ],
  restart: [
    "4 of 4 pods ready",
    "$ aim restart deploy/web -c app -n default",
    "[4/4] pod web-",
    "restarted: app of 4 pods of deploy/web",
    "4 of 4 pods are the same ones, 4 with the same address",
    "4 of 4 proxies are the same containers",
    "4 of 4 apps are new containers; each was restarted 1 time",
    "At every moment at least 3 of 4 pods were ready",
    "WaitingForBackOff",
    "restarted: app of pod/web-",
    "4 of 4 pods are ready",
    "To try next",
  ],
  "pre-pull": [
    "6 of 6 pods run v1",
    "BackoffLimitExceeded: 5 of 6 nodes have the image; 1 node failed: node-5 (DiskFull)",
    "$ aim why ipj/web -n default",
    "86 % used, and the kubelet removes images above 85 %",
    "Completed: 6 nodes have the image",
    "goes down, and v2 is rolled out all the same",
    "6 of 6 pods run v2. The kubelets say of it",
    '6 times: Container image "registry.example.com/shop/web:v2" already present on machine',
    "0 times: pulled",
    "To try next",
  ],
  "in-place": [
    "4 of 4 pods ready, 4 on v1",
    "$ kubectl set image deploy/web app=v2",
    "held: Updating",
    "4 of 4 pods are the same ones, 4 with the same address",
    "4 of 4 proxies are the same containers",
    "4 of 4 apps are new containers, of v2",
    "At every moment at least 3 of 4 pods were ready",
    "$ kubectl set image deploy/web app=v3",
    "RolledBack: 4 pods went back",
    "the shop serves v2 with the same 4 pods",
    "To try next",
  ],
  traffic: [
    "A shop of 4 pods on v1",
    "Initialized",
    "$ kubectl set image deploy/web web=v2",
    "Progressing, 20 % of the requests",
    "Progressing, 50 % of the requests",
    "Promoting",
    "Succeeded",
    "2 of the 2 pods that were tested are the shop's now",
    "requests were sent meanwhile, and 0 failed",
    "$ kubectl set image deploy/web web=v3",
    "(MetricFailed: request-success-rate: ",
    "Failed (Rejected: ",
    "Caught at 20 %",
    "and 0 got no answer",
    "$ aim why canary/web -n default",
    "RolledBack (AnalysisFailed: request-success-rate: ",
    "web:v2   web:v3",
    "To try next",
  ],
}

for (const [story, sentences] of Object.entries(sentencesOf))
  test(`the story ${story} is told in plain lines where there is no terminal, and ends well`, async () => {
    const { code, stdout } = await runProgram("bin/aim", ["demo", story])
    expect(code).toBe(0)
    let from = 0
    for (const sentence of sentences) {
      const place = stdout.indexOf(sentence, from)
      expect(place, `${sentence}, in\n${stdout}`).toBeGreaterThanOrEqual(0)
      from = place
    }
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the beginning of a colour or of a movement of the cursor
    expect(stdout).not.toMatch(/\x1b/)
  })

test("the stories that are offered are those there are", () => {
  const { arguments: [story] = [] } = commands.find(({ name }) => name === "demo")!
  expect(story!.choices).toEqual(stories.map(({ name }) => name))
})

test("--list names the stories, and a story that is not there is wrong usage", async () => {
  expect(await runProgram("bin/aim", ["demo", "--list"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^upgrade +a fleet/),
  })
  expect(await runProgram("bin/aim", ["demo", "opera"])).toMatchObject({
    code: 2,
    output: expect.stringContaining(
      "opera is not a STORY: write upgrade, canary, registry-outage, restart, pre-pull, in-place, traffic",
    ),
  })
})

test("sentences and pictures are broken between words at the width of the window", () => {
  const drawn: string[] = []
  const told = narrator({
    view: { isTerminal: true, columns: 80, colours: false },
    draw: frame => void drawn.push(frame),
  })
  const words =
    "A cluster is up in this process: three nodes, an API server that kubectl would talk to, and controllers."
  const picture = `  ais/web  Repairing: ${"pod shop/web-1 cannot pull its image; ".repeat(4)}`.trimEnd()
  told.tell(words)
  told.show(`${picture}\n`)
  for (const line of drawn.at(-1)!.split("\n")) expect(line.length).toBeLessThanOrEqual(80)
  const flat = drawn.at(-1)!.replaceAll(/\s+/g, " ")
  expect(flat).toContain(words)
  expect(flat).toContain(picture.trim().replaceAll(/\s+/g, " "))
})
