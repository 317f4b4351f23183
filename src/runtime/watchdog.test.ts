import { spawn } from "node:child_process"
import { once } from "node:events"
import { expect, onTestFinished, test } from "vitest"

// Real processes that block: a watchdog in this one would end the tests.

const module = new URL("./watchdog.ts", import.meta.url).href

/** A process with a watchdog; says `ready` when the loop runs. */
async function guarded(body: string) {
  const code = `
    import { startWatchdog } from ${JSON.stringify(module)}
    const stop = startWatchdog({ stillMs: 3000, beatMs: 100 })
    const block = ms => { for (const until = performance.now() + ms; performance.now() < until; ); }
    const pause = ms => new Promise(resolve => setTimeout(resolve, ms))
    await pause(300)
    console.log("ready")
    await pause(0)
    ${body}`
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], { stdio: ["ignore", "pipe", "pipe"] })
  onTestFinished(() => void child.kill("SIGKILL"))
  let said = ""
  child.stderr.setEncoding("utf8").on("data", text => {
    said += text
  })
  const ended = once(child, "close")
  await once(child.stdout, "data")
  return { child, ended, said: () => said }
}

test("a process whose event loop stands still is ended, and says why", async () => {
  const { ended, said } = await guarded("for (;;);")
  expect(await ended).toEqual([null, "SIGKILL"])
  expect(JSON.parse(said())).toMatchObject({
    level: "error",
    message: expect.stringMatching(/^the event loop has stood still for \d+ ms, ending$/),
  })
})

test("long pieces of work with pauses between them are let through", async () => {
  const { ended, said } = await guarded("for (let turn = 0; turn < 5; turn++) { block(800); await pause(150) } stop()")
  expect([await ended, said()]).toEqual([[0, null], ""])
})

test("the time in which the whole process was stopped does not count", async () => {
  const work =
    "const used = () => { const { user, system } = process.cpuUsage(); return user + system }; const since = used(); while (used() - since < 200_000);"
  const { child, ended, said } = await guarded(`${work} await pause(200); stop()`)
  child.kill("SIGSTOP") // in the middle of work, which goes on after it
  await new Promise(resolve => setTimeout(resolve, 4000)) // the time that passes is what is tested
  child.kill("SIGCONT")
  expect([await ended, said()]).toEqual([[0, null], ""])
})
