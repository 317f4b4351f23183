import { spawnSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { repository } from "#tools/kube/folders.ts"

/**
 * A clone with the real bin/aim, and a machine whose Nodes are scripts: the old one, which is in PATH, notes that it
 * was started and answers as bin/prepare.cjs would; the new one says what it was started with.
 */
function clone({ newNode = "cache/node/26/bin/node", old = "bin/node" } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "aim launcher ")) // with spaces, as people's folders have
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const at = (path: string) => join(folder, path)
  const write = (path: string, text: string) => {
    mkdirSync(dirname(at(path)), { recursive: true })
    writeFileSync(at(path), text)
  }
  const program = (path: string, text: string) => {
    write(path, `#!/bin/sh\n${text}\n`)
    chmodSync(at(path), 0o755)
  }
  write("clone/package.json", "{}")
  write("clone/package-lock.json", "{}")
  write("clone/bin/prepare.cjs", "")
  write("clone/src/cli/main.ts", "")
  cpSync(join(repository, "bin/aim"), at("clone/bin/aim"))
  const install = (path: string, name: string) => program(path, `echo ${name} "$@"`)
  install(newNode, "new")
  const prepares = (answer: string) => program(old, `echo started >>"${at("log")}"\nprintf %s "${at(answer)}"`)
  prepares(newNode)

  return {
    at,
    write,
    install,
    prepares,
    /** What is printed, and how often the old Node was started for it. */
    aim(env: Record<string, string> = {}) {
      rmSync(at("log"), { force: true })
      const { stdout, stderr, status } = spawnSync(at("clone/bin/aim"), ["status", "-n", "a b"], {
        encoding: "utf8",
        env: { PATH: `${dirname(at(old))}:/usr/bin:/bin`, HOME: folder, AIM_CACHE: at("cache"), ...env },
      })
      const asked = existsSync(at("log")) ? readFileSync(at("log"), "utf8").trim().split("\n").length : 0
      return { said: stdout.replace(at("clone/"), ""), stderr, status, asked }
    },
  }
}

const fine = { said: "new src/cli/main.ts status -n a b\n", stderr: "", status: 0 }

test("which Node to use is asked once and remembered", () => {
  const { aim } = clone()
  expect(aim()).toEqual({ ...fine, asked: 1 })
  expect(aim()).toEqual({ ...fine, asked: 0 })
  expect(aim()).toEqual({ ...fine, asked: 0 })
})

type Clone = ReturnType<typeof clone>
const changes: Record<string, (clone: Clone) => void> = {
  "the lock file": ({ write }) => write("clone/package-lock.json", "[]"),
  "the manifest": ({ write }) => write("clone/package.json", "[]"),
  "what prepares": ({ write }) => write("clone/bin/prepare.cjs", "1"),
  "the note of what is installed": ({ write }) => write("clone/node_modules/.aim-prepared", "all"),
  "the new Node": ({ install }) => install("cache/node/26/bin/node", "new"),
  "the Node in PATH": ({ prepares }) => prepares("cache/node/26/bin/node"),
  // As a package manager does it: another file, and older than what is remembered.
  "the Node in PATH, by another file with the same content": ({ at }) => {
    cpSync(at("bin/node"), at("bin/other"), { preserveTimestamps: true })
    renameSync(at("bin/other"), at("bin/node"))
  },
}
for (const [what, change] of Object.entries(changes))
  test(`it is asked again when ${what} has changed`, () => {
    const machine = clone()
    machine.aim()
    change(machine)
    expect(machine.aim()).toEqual({ ...fine, asked: 1 })
    expect(machine.aim()).toEqual({ ...fine, asked: 0 })
  })

test("a Node that is gone is not started, and the one that replaces it is", () => {
  const { aim, at, install, prepares } = clone()
  aim()
  rmSync(at("cache/node/26/bin/node"))
  install("cache/node/28/bin/node", "newer")
  prepares("cache/node/28/bin/node")
  expect(aim()).toMatchObject({ said: "newer src/cli/main.ts status -n a b\n", asked: 1 })
})

test("another Node in PATH is asked, though the first has not changed", () => {
  const { aim, at, install } = clone()
  aim()
  install("other/node", "never used")
  cpSync(at("bin/node"), at("other/node"))
  expect(aim({ PATH: `${at("other")}:/usr/bin:/bin` })).toEqual({ ...fine, asked: 1 })
})

test("a shim, which starts one Node today and another tomorrow, is asked each time", () => {
  const { aim } = clone({ newNode: "versions/24/node" })
  for (let i = 0; i < 2; i++) expect(aim()).toEqual({ ...fine, asked: 1 })
})

test("a Node of the machine that is new enough is remembered, also behind a link", () => {
  const { aim, at, prepares } = clone({ old: "real/node" })
  prepares("real/node")
  mkdirSync(at("bin"))
  symlinkSync(at("real/node"), at("bin/node"))
  const env = { PATH: `${at("bin")}:/usr/bin:/bin` }
  expect(aim(env)).toMatchObject({ asked: 2 }) // it prepares, and then it is what runs
  expect(aim(env)).toMatchObject({ asked: 1 })
})

test("what is remembered was cut off in the middle: it is asked again", () => {
  const { aim, at, write } = clone()
  aim()
  const path = `cache/launch${at("clone")}/answer`
  write(path, readFileSync(at(path), "utf8").slice(0, -30))
  expect(aim()).toEqual({ ...fine, asked: 1 })
})

test("what changes while it is prepared may have come too late, and is looked at again", () => {
  const { aim, at, write } = clone()
  const pull = `echo "{1}" >"${at("clone/package-lock.json")}"`
  write("bin/node", `${readFileSync(at("bin/node"), "utf8")}${pull}\n`)
  for (let i = 0; i < 2; i++) expect(aim()).toEqual({ ...fine, asked: 1 })
})

test("a cache that cannot be written costs time and nothing else", () => {
  const { aim } = clone()
  expect(aim({ AIM_CACHE: "/dev/null/cache" })).toEqual({ ...fine, asked: 1 })
})

test("a preparation that fails ends it, and is not remembered", () => {
  const { aim, at, write } = clone()
  write("bin/node", "#!/bin/sh\necho npm is missing >&2\nexit 1\n")
  chmodSync(at("bin/node"), 0o755)
  for (let i = 0; i < 2; i++) expect(aim()).toMatchObject({ said: "", stderr: "npm is missing\n", status: 1 })
})

test("no Node at all is said in a sentence", () => {
  const { aim, at } = clone()
  mkdirSync(at("empty"))
  for (const tool of ["dirname", "readlink", "sh"]) symlinkSync(`/usr/bin/${tool}`, at(`empty/${tool}`))
  expect(aim({ PATH: at("empty") })).toMatchObject({ status: 1, stderr: expect.stringContaining("node is missing") })
})
