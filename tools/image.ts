// `npm run image`: an OCI image of aim, made without a container engine.
import { createHash } from "node:crypto"
import {
  chmodSync,
  copyFileSync,
  cpSync,
  createReadStream,
  existsSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { parseArgs } from "node:util"
import { imageProgram } from "#cli/manifests/names.ts"
import { type Bundle, bundle, sourceDate } from "./build.ts"
import { type Architecture, type NodeProgram, nodeOfMachine } from "./image/node.ts"
import { findProgram, run } from "./kube/command.ts"
import { cacheFolder, repository } from "./kube/folders.ts"
import { withLock } from "./kube/lock.ts"
import { preparePackages } from "./kube/packages.ts"

const help = `Builds the container image of aim: Node, the bundle, the libraries Node needs, and nothing else.

  npm run image [-- options]

  --output PATH    where the image goes: a folder (OCI layout), or a file that ends in .tar (OCI archive); dist/image
  --tag TAG        its name in there; the version of aim
  --push REF       also push it, for example to registry.example.com/aim:0.1.0
  --plain-http     the registry of --push speaks HTTP, or HTTPS with a certificate that no authority signed
  --help           this text

The same content gives the same digest (times are those of SOURCE_DATE_EPOCH, or 1970), and is made only once.
`

export type Image = {
  /** An OCI layout in the cache. Read it, copy it; it is shared. */
  layout: string
  tag: string
  digest: string
  /** What a node downloads. */
  compressedBytes: number
}

type Say = (line: string) => void
type Content = { from: string } | { text: string } | "folder"
/** What a layer holds, by path. */
type Contents = Map<string, Content>

/**
 * Builds the image, or finds it built. Two layers: Node and its libraries change with a release of Node, the bundle
 * with every commit, and a node that has the first downloads only the second.
 */
export async function buildImage(options: { say: Say; bundle?: Bundle; node?: NodeProgram }): Promise<Image> {
  if (!findProgram("umoci") || !findProgram("skopeo")) await preparePackages({ node: true, say: options.say })
  const app = contentsOfApp(options.bundle ?? (await bundle()))
  const program = options.node ?? (await nodeOfMachine())
  const node = contentsOfNode(program)
  const epoch = sourceDate().toISOString()
  const recipe = [readFileSync(import.meta.filename, "utf8"), epoch, program.architecture]

  const base = await made("node", [...recipe, await hashOf(node)], options.say, async layout => {
    await run("umoci", ["init", "--layout", layout])
    await run("umoci", ["new", "--image", `${layout}:aim`])
    await insert(layout, node, epoch, `Node ${program.version} and its libraries`)
  })
  const layout = await made("aim", [base, await hashOf(app)], options.say, async layout => {
    cpSync(base, layout, { recursive: true })
    await insert(layout, app, epoch, "aim")
    await run("umoci", ["config", "--image", `${layout}:aim`, ...settings(epoch, program.architecture)])
    await run("umoci", ["gc", "--layout", layout])
  })
  return describe(layout)
}

/** Pushes the image and returns the reference by digest, for a Deployment that pins it. */
export async function pushImage(image: Image, to: { reference: string; plainHttp?: boolean }) {
  const tls = to.plainHttp ? ["--dest-tls-verify=false"] : []
  const source = `oci:${image.layout}:${image.tag}`
  await run("skopeo", [
    "--insecure-policy",
    "copy",
    "--quiet",
    "--preserve-digests",
    ...tls,
    source,
    `docker://${to.reference}`,
  ])
  return `${to.reference.replace(/:[^:/]*$/, "")}@${image.digest}`
}

function settings(epoch: string, architecture: Architecture): string[] {
  const { version, description, license } = manifest()
  const labels = { title: "aim", description, version, licenses: license, created: epoch }
  return [
    ...["--config.user", "65532:65532", "--config.workingdir", "/"],
    // Node sizes its heap by the memory limit of the container; it needs no flag for that.
    ...["--config.entrypoint", imageProgram.node, "--config.entrypoint", imageProgram.aim],
    ...Object.entries(labels).flatMap(([name, text]) => ["--config.label", `org.opencontainers.image.${name}=${text}`]),
    ...["--os", "linux", "--architecture", architecture],
    ...["--created", epoch, "--no-history"],
  ]
}

const manifest = () => JSON.parse(readFileSync(join(repository, "package.json"), "utf8"))

function contentsOfApp({ folder, files }: Bundle): Contents {
  const contents: Contents = new Map<string, Content>([["/app", "folder"]])
  for (const file of files) contents.set(`/app/${file}`, { from: join(folder, file) })
  return contents.set("/app/package.json", { text: '{"type":"module"}\n' })
}

/** Node, the libraries it is linked to, their licences, and the two files that give uid 65532 a name. */
function contentsOfNode({ binary, licence, libraries, packages }: NodeProgram): Contents {
  const contents: Contents = new Map<string, Content>([
    ["/tmp", "folder"],
    ["/etc/passwd", { text: "root:x:0:0:root:/:/sbin/nologin\naim:x:65532:65532:aim:/:/sbin/nologin\n" }],
    ["/etc/group", { text: "root:x:0:\naim:x:65532:\n" }],
    [imageProgram.node, { from: binary }],
  ])
  if (existsSync(licence)) contents.set("/usr/share/doc/nodejs/copyright", { from: licence })
  for (const { path, from } of libraries) contents.set(path, { from })
  for (const { name } of packages) {
    const copyright = `/usr/share/doc/${name}/copyright`
    contents.set(copyright, { from: copyright })
  }
  return contents
}

async function hashOf(contents: Contents): Promise<string> {
  const hash = createHash("sha256")
  for (const [path, content] of [...contents].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`\0${path}\0`)
    if (content === "folder") continue
    if ("text" in content) hash.update(content.text)
    else for await (const part of createReadStream(content.from)) hash.update(part)
  }
  return hash.digest("hex")
}

/** Runs `make` unless something made from the same inputs is in the cache; a half-made one is never found there. */
async function made(name: string, inputs: string[], say: Say, make: (layout: string) => Promise<void>) {
  const hash = createHash("sha256").update(JSON.stringify(inputs)).digest("hex").slice(0, 16)
  const layout = join(cacheFolder(), "image", `${name}-${hash}`)
  if (existsSync(layout)) return layout
  const onWait = () => say("waiting for another build of the image")
  await withLock(join(cacheFolder(), "image", `${name}.lock`), onWait, async () => {
    if (existsSync(layout)) return
    say(`building the layer with ${name}`)
    const unfinished = `${layout}.unfinished`
    rmSync(unfinished, { recursive: true, force: true })
    await make(unfinished)
    renameSync(unfinished, layout)
    forgetOld(dirname(layout), name)
  })
  return layout
}

/** Keeps the last few: a push or a test may still be reading the one before. */
function forgetOld(folder: string, name: string) {
  const kept = readdirSync(folder)
    .filter(entry => entry.startsWith(`${name}-`))
    .map(entry => join(folder, entry))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  for (const old of kept.slice(8)) rmSync(old, { recursive: true })
}

async function insert(layout: string, contents: Contents, epoch: string, history: string) {
  const root = mkdtempSync(join(tmpdir(), "aim-image-"))
  try {
    for (const [path, content] of contents) {
      const target = join(root, path)
      mkdirSync(content === "folder" ? target : dirname(target), { recursive: true })
      if (content === "folder") continue
      if ("text" in content) writeFileSync(target, content.text)
      else copyFileSync(content.from, target)
    }
    makeUniform(root, new Date(epoch))
    const mapping = process.getuid?.() === 0 ? [] : ["--rootless"]
    const record = ["--history.created", epoch, "--history.created_by", history]
    await run("umoci", ["insert", "--image", `${layout}:aim`, ...mapping, ...record, root, "/"])
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

/** Times and permissions depend on the path alone, and not on when and under which umask this ran. */
function makeUniform(path: string, time: Date) {
  const isFolder = statSync(path).isDirectory()
  if (isFolder) for (const name of readdirSync(path)) makeUniform(join(path, name), time)
  const isProgram = /\/usr\/bin\/|\/ld-linux/.test(path)
  chmodSync(path, isFolder && basename(path) === "tmp" ? 0o1777 : isFolder || isProgram ? 0o755 : 0o644)
  lutimesSync(path, time, time)
}

function describe(layout: string): Image {
  const read = (file: string) => JSON.parse(readFileSync(join(layout, file), "utf8"))
  const [{ digest }] = read("index.json").manifests
  const { config, layers } = read(join("blobs", ...digest.split(":")))
  const sizes: number[] = [config, ...layers].map(({ size }) => size)
  return { layout, tag: "aim", digest, compressedBytes: sizes.reduce((sum, size) => sum + size) }
}

/** Copies the image out of the cache under the name the user wants, unless it is there already. */
async function exportImage(image: Image, output: string, tag: string) {
  if (output.endsWith(".tar")) {
    rmSync(output, { force: true })
    mkdirSync(dirname(output), { recursive: true })
    const target = `oci-archive:${output}:${tag}`
    return void (await run("skopeo", [
      "--insecure-policy",
      "copy",
      "--quiet",
      `oci:${image.layout}:${image.tag}`,
      target,
    ]))
  }
  const index = readFileSync(join(image.layout, "index.json"), "utf8")
  const renamed = JSON.parse(index)
  renamed.manifests[0].annotations = { "org.opencontainers.image.ref.name": tag }
  const wanted = JSON.stringify(renamed)
  const file = join(output, "index.json")
  if (existsSync(file) && readFileSync(file, "utf8") === wanted) return
  if (existsSync(output) && !existsSync(join(output, "oci-layout")) && readdirSync(output).length > 0)
    throw new Error(`${output} is a folder with something else in it; --output takes a new one`)
  rmSync(output, { recursive: true, force: true })
  cpSync(image.layout, output, { recursive: true })
  writeFileSync(file, wanted)
}

async function main() {
  const { values } = parseArgs({
    options: {
      output: { type: "string", default: join(repository, "dist", "image") },
      tag: { type: "string", default: manifest().version },
      push: { type: "string" },
      "plain-http": { type: "boolean", default: false },
      help: { type: "boolean" },
    },
  })
  if (values.help) return void process.stdout.write(help)
  if (!/^\w[\w.-]{0,127}$/.test(values.tag)) throw new Error(`--tag takes a tag such as 0.1.0, not ${values.tag}`)
  const say = (line: string) => process.stderr.write(`image: ${line}\n`)
  const since = performance.now()
  const image = await buildImage({ say })
  await exportImage(image, values.output, values.tag)
  const seconds = ((performance.now() - since) / 1000).toFixed(1)
  say(
    `${values.output} has ${image.digest}, ${(image.compressedBytes / 1e6).toFixed(1)} MB compressed, in ${seconds} s`,
  )
  if (!values.push) return void process.stdout.write(`${image.digest}\n`)
  const pushed = await pushImage(image, { reference: values.push, plainHttp: values["plain-http"] })
  process.stdout.write(`${pushed}\n`)
}

if (import.meta.main)
  await main().catch((error: Error) => {
    process.stderr.write(`image: ${error.message}\n`)
    process.exitCode = "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS") ? 2 : 1
  })
