// `npm run release`: everything that a version consists of, in one folder.
import { createHash } from "node:crypto"
import {
  cpSync,
  createReadStream,
  existsSync,
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
import { join } from "node:path"
import { parseArgs } from "node:util"
import { sources } from "#cli/manifests/sources.ts"
import { toDocuments } from "#cli/render/yaml.ts"
import { bundle, pack, sourceDate } from "./build.ts"
import { type Architecture, pinnedNode } from "./image/node.ts"
import { buildImage } from "./image.ts"
import { repository } from "./kube/folders.ts"
import { sectionOf } from "./release/changelog.ts"
import { packChart } from "./release/chart.ts"
import { packImages } from "./release/image.ts"
import { sbom } from "./release/sbom.ts"

const help = `Makes everything that the version in package.json consists of.

  npm run release [-- options]

  --output PATH    the folder; dist/release
  --help           this text

  autoimagemanager-VERSION.tgz   the npm package
  aim-VERSION.tgz                the Helm chart
  aim-VERSION.crds.yaml          the CustomResourceDefinitions
  aim-VERSION.image.tar          the container image for amd64 and arm64, an OCI archive
  aim-VERSION.spdx.json          what is in it, as SPDX
  SHA256SUMS                     of all of these: sha256sum --check SHA256SUMS

CHANGELOG.md must have a section for the version. The same content gives the same bytes (times are those of
SOURCE_DATE_EPOCH, or 1970).
`

const architectures: readonly Architecture[] = ["amd64", "arm64"]

type Say = (line: string) => void

/** Makes a release in a new folder and puts it in place when it is whole. */
async function release(output: string, say: Say): Promise<string[]> {
  const read = (file: string) => readFileSync(join(repository, file), "utf8")
  const manifest = JSON.parse(read("package.json"))
  const { version } = manifest
  sectionOf(read("CHANGELOG.md"), version)
  refuseOthers(output)

  const unfinished = `${output}.unfinished`
  const work = mkdtempSync(join(tmpdir(), "aim-release-"))
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true })
  try {
    const at = (name: string) => join(unfinished, name)
    const created = sourceDate()
    const built = await bundle({ folder: work })
    cpSync(pack(built), at(`${manifest.name}-${version}.tgz`))
    await packChart(at(`aim-${version}.tgz`), created)
    writeFileSync(at(`aim-${version}.crds.yaml`), toDocuments(sources().crds))

    const nodes = []
    const platforms = []
    for (const architecture of architectures) {
      const node = await pinnedNode(architecture, say)
      nodes.push(node)
      platforms.push({ architecture, image: await buildImage({ say, bundle: built, node }) })
    }
    say(`the image is ${await packImages(at(`aim-${version}.image.tar`), platforms, version, created)}`)
    const bill = sbom({ manifest, lock: JSON.parse(read("package-lock.json")), nodes, created })
    writeFileSync(at(`aim-${version}.spdx.json`), `${JSON.stringify(bill, null, 2)}\n`)
    writeFileSync(at("SHA256SUMS"), await checksums(unfinished))
    rmSync(output, { recursive: true, force: true })
    renameSync(unfinished, output)
    return readdirSync(output).map(name => join(output, name))
  } finally {
    rmSync(work, { recursive: true, force: true })
    rmSync(unfinished, { recursive: true, force: true })
  }
}

/** A release replaces a release, and no folder with something else in it. */
function refuseOthers(output: string) {
  if (existsSync(output) && readdirSync(output).length > 0 && !existsSync(join(output, "SHA256SUMS")))
    throw new Error(`${output} is a folder with something else in it; --output takes a new one`)
}

/** As sha256sum writes them. */
async function checksums(folder: string): Promise<string> {
  const lines = readdirSync(folder)
    .sort()
    .map(async name => {
      const hash = createHash("sha256")
      for await (const part of createReadStream(join(folder, name))) hash.update(part)
      return `${hash.digest("hex")}  ${name}\n`
    })
  return (await Promise.all(lines)).join("")
}

async function main() {
  const output = { type: "string", default: join(repository, "dist", "release") } as const
  const { values } = parseArgs({ options: { output, help: { type: "boolean" } } })
  if (values.help) return void process.stdout.write(help)
  const say = (line: string) => process.stderr.write(`release: ${line}\n`)
  for (const file of await release(values.output, say)) {
    say(`${file}, ${(statSync(file).size / 1e6).toFixed(2)} MB`)
  }
  process.stdout.write(`${values.output}\n`)
}

await main().catch((error: Error) => {
  process.stderr.write(`release: ${error.message}\n`)
  process.exitCode = "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS") ? 2 : 1
})
