import { createHash, randomBytes } from "node:crypto"
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { findProgram, run } from "./command.ts"
import { cacheFolder } from "./folders.ts"
import { withLock } from "./lock.ts"

export type ImageOptions = {
  /** What the image says it is: in its log, at http://POD:8080/ and in /etc/version. The tag unless given. */
  version?: string
  /** Replaces the little web server. */
  command?: string[]
  /** Ends this long after its start instead of serving for ever. */
  crashes?: { afterSeconds: number; exitCode?: number }
  /** Makes the image bigger by this many bytes that do not compress and that no other image shares. */
  paddingBytes?: number
}

export type PushedImage = { reference: string; digest: string }

/** Makes a small image and pushes it as `registry/name`; the busybox layer is shared by all of them. */
export async function pushImage(registry: string, name: string, options: ImageOptions = {}): Promise<PushedImage> {
  return pushFrom(await prepareBase(), `${registry}/${name}`, async (image, work) => {
    const version = options.version ?? name.slice(name.lastIndexOf(":") + 1)
    const content = join(work, "content")
    mkdirSync(join(content, "www"), { recursive: true })
    writeFileSync(join(content, "version"), `${version}\n`)
    writeFileSync(join(content, "www", "index.html"), `${version}\n`)
    if (options.paddingBytes) writeFileSync(join(content, "padding"), randomBytes(options.paddingBytes))
    await run("umoci", ["insert", "--image", image, content, "/srv"])
    const command = options.command ?? ["/bin/sh", "-c", script(name, version, options.crashes)]
    await configure(image, command)
  })
}

/**
 * Pushes the server of examples/traffic as `registry/name`: that one program and nothing else, not even a shell. Images
 * differ in their environment only, so a node downloads the program once.
 */
export async function pushServer(registry: string, name: string, options: ServerOptions): Promise<PushedImage> {
  const base = await prepareServerBase(options.program)
  const version = name.slice(name.lastIndexOf(":") + 1)
  const settings = Object.entries({ VERSION: version, ...options.env })
  return pushFrom(base, `${registry}/${name}`, async image => {
    const environment = settings.flatMap(([key, value]) => ["--config.env", `${key}=${value}`])
    await run("umoci", ["config", "--image", image, ...environment])
  })
}

/** The program, and what its environment says by default: see examples/traffic/main.go. */
export type ServerOptions = { program: string; env?: Record<string, string> }

let lastPush: Promise<unknown> = Promise.resolve()

/** The registry answers with 500 where it is asked for a blob that another push to the same repository just writes. */
function inTurn<T>(push: () => Promise<T>): Promise<T> {
  const done = lastPush.then(push)
  lastPush = done.catch(() => {})
  return done
}

/** Copies a layout, changes the image in it, and pushes that. */
async function pushFrom(base: string, reference: string, change: (image: string, work: string) => Promise<void>) {
  const work = mkdtempSync(join(tmpdir(), "aim-image-"))
  try {
    const layout = join(work, "layout")
    cpSync(base, layout, { recursive: true })
    const image = `${layout}:base`
    await change(image, work)
    const digestFile = join(work, "digest")
    const transport = ["--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false", "--digestfile", digestFile]
    await inTurn(() => run("skopeo", [...transport, `oci:${image}`, `docker://${reference}`]))
    return { reference, digest: readFileSync(digestFile, "utf8").trim() }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Puts an index in the place of the image that has this name: with this image, said to be for one architecture. */
export async function pushIndex(address: string, name: string, architecture: string): Promise<string> {
  const [repository, tag] = name.split(":")
  const url = `http://${address}/v2/${repository}/manifests/${tag}`
  const mediaType = "application/vnd.oci.image.manifest.v1+json"
  const image = await fetch(url, { headers: { accept: mediaType } })
  const size = (await image.arrayBuffer()).byteLength
  const digest = image.headers.get("docker-content-digest")
  const manifests = [{ mediaType, digest, size, platform: { architecture, os: "linux" } }]
  const index = { schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests }
  const headers = { "content-type": index.mediaType }
  const answer = await fetch(url, { method: "PUT", headers, body: JSON.stringify(index) })
  if (answer.status !== 201) throw new Error(`pushing the index ${name}: ${answer.status}`)
  return answer.headers.get("docker-content-digest") ?? ""
}

/** The image of a pod's sandbox: it holds the namespaces and does nothing. */
export function pushPauseImage(registry: string, name: string): Promise<PushedImage> {
  return pushImage(registry, name, { command: ["/bin/sh", "-c", idle] })
}

// A first process ignores signals that it does not handle, and a pod would take its whole grace period to end.
const polite = "trap 'exit 0' TERM INT"
const idle = `${polite}; while :; do sleep 3600 & wait $!; done`

/** When it says what it is, it serves and ends on SIGTERM. */
function script(name: string, version: string, crashes: ImageOptions["crashes"]): string {
  const greeting = `${polite}; httpd -p 8080 -h /srv/www; echo "${name} version ${version}"`
  if (!crashes) return `${greeting}; ${idle}`
  return `${greeting}; sleep ${crashes.afterSeconds} & wait $!; exit ${crashes.exitCode ?? 1}`
}

function configure(image: string, command: string[]) {
  const words = ["--clear=config.cmd", ...command.flatMap(word => ["--config.cmd", word])]
  return run("umoci", ["config", "--image", image, ...words])
}

/** An OCI layout with busybox and its applets, made once per version of busybox and kept in the cache. */
async function prepareBase(): Promise<string> {
  const busybox = findProgram("busybox")
  if (!busybox)
    throw new Error("busybox is missing; install it: apt-get install --no-install-recommends busybox-static")
  const { size, mtimeMs } = statSync(busybox)
  return prepareLayout(`busybox-${size}-${Math.round(mtimeMs)}`, async (image, root) => {
    for (const folder of ["bin", "etc", "tmp", "srv"]) mkdirSync(join(root, folder))
    chmodSync(join(root, "tmp"), 0o1777)
    copyFileSync(busybox, join(root, "bin", "busybox"))
    const applets = (await run(busybox, ["--list"])).trim().split("\n")
    for (const applet of applets.filter(name => name !== "busybox")) symlinkSync("busybox", join(root, "bin", applet))
    writeFileSync(join(root, "etc", "passwd"), "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    await run("umoci", ["insert", "--image", image, root, "/"])
    await run("umoci", ["config", "--image", image, "--config.env", "PATH=/bin"])
  })
}

/** An OCI layout with one static program, made once for each content of it. */
function prepareServerBase(program: string): Promise<string> {
  const hash = createHash("sha256").update(readFileSync(program)).digest("hex").slice(0, 16)
  return prepareLayout(`server-${hash}`, async (image, root) => {
    copyFileSync(program, join(root, "server"))
    chmodSync(join(root, "server"), 0o755)
    await run("umoci", ["insert", "--image", image, root, "/"])
    await run("umoci", ["config", "--image", image, "--config.entrypoint", "/server", "--config.user", "65532:65532"])
  })
}

/** The layout of this name in the cache, with an image `base`. If it is not there, `fill` makes it from an empty root. */
async function prepareLayout(name: string, fill: (image: string, root: string) => Promise<void>): Promise<string> {
  const layout = join(cacheFolder(), "images", name)
  if (existsSync(layout)) return layout
  await withLock(
    `${layout}.lock`,
    () => {},
    async () => {
      if (existsSync(layout)) return
      const root = mkdtempSync(join(tmpdir(), "aim-image-"))
      chmodSync(root, 0o755)
      const unfinished = `${layout}.unfinished`
      rmSync(unfinished, { recursive: true, force: true })
      await run("umoci", ["init", "--layout", unfinished])
      await run("umoci", ["new", "--image", `${unfinished}:base`])
      await fill(`${unfinished}:base`, root)
      await run("umoci", ["gc", "--layout", unfinished])
      renameSync(unfinished, layout)
      rmSync(root, { recursive: true })
    },
  )
  return layout
}
