import { createHash } from "node:crypto"
import type { NodeProgram } from "../image/node.ts"

type Locked = {
  version: string
  integrity: string
  license?: string
  dev?: boolean
  dependencies?: Record<string, string>
}
export type Lock = { packages: Record<string, Locked> }

/** What a release consists of, from what pins it. */
export type Parts = {
  manifest: { name: string; version: string; license: string; description: string }
  lock: Lock
  /** The Node of each image, with the Debian packages that its libraries come from. */
  nodes: readonly NodeProgram[]
  created: Date
}

type Package = {
  SPDXID: string
  name: string
  versionInfo: string
  downloadLocation: string
  filesAnalyzed: false
  licenseConcluded: string
  licenseDeclared: string
  copyrightText: string
  description?: string
  checksums?: { algorithm: string; checksumValue: string }[]
  externalRefs: { referenceCategory: string; referenceType: string; referenceLocator: string }[]
}

/** Builds the dashboard's page at its first use in a clone, so a clone installs it. A release has the page built. */
const onlyInClones = "rolldown"

/** Paths of the packages that the code of a release comes from: all that the manifest leads to. */
function runningIn({ packages }: Lock): Set<string> {
  const found = new Set<string>()
  const follow = (from: string) => {
    for (const name of Object.keys(packages[from]?.dependencies ?? {})) {
      const path = resolved(from, name, path => packages[path] !== undefined)
      if (name === onlyInClones || found.has(path)) continue
      found.add(path)
      follow(path)
    }
  }
  follow("")
  return found
}

/** The bill of materials as SPDX 2.3: every package of the lock file that runs, and Node and its libraries. */
export function sbom({ manifest, lock, nodes, created }: Parts): object {
  const paths = runningIn(lock)
  const running = Object.entries(lock.packages).filter(([path]) => paths.has(path))
  const npm = running.map(([path, locked]) => ({ path, locked, entry: npmPackage(path, locked) }))
  const root: Package = {
    ...aPackage("aim", manifest, `pkg:npm/${manifest.name}@${manifest.version}`),
    description: manifest.description,
  }
  const idAt = (path: string) => npm.find(each => each.path === path)?.entry.SPDXID
  const relations = [
    relation("SPDXRef-DOCUMENT", "DESCRIBES", root.SPDXID),
    ...npm.map(({ entry }) => relation(root.SPDXID, "CONTAINS", entry.SPDXID)),
    ...[{ path: "", locked: lock.packages[""]! }, ...npm].flatMap(({ path, locked }) =>
      namesIn(locked).map(name => {
        const found = resolved(path, name, path => idAt(path) !== undefined)
        return relation(idAt(path) ?? root.SPDXID, "DEPENDS_ON", idAt(found)!)
      }),
    ),
  ]
  const images = nodes.flatMap(packagesOfNode)
  const packages = [root, ...npm.map(({ entry }) => entry), ...images]
  const hash = createHash("sha256").update(JSON.stringify(packages)).digest("hex")
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name: `aim-${manifest.version}`,
    documentNamespace: `https://autoimagemanager.io/spdx/aim-${manifest.version}-${hash}`,
    creationInfo: { created: created.toISOString().replace(/\.\d+Z$/, "Z"), creators: ["Tool: aim-release"] },
    packages,
    relationships: [...relations, ...images.map(entry => relation(root.SPDXID, "DEPENDS_ON", entry.SPDXID))],
  }
}

const namesIn = ({ dependencies = {} }: Locked) => Object.keys(dependencies).filter(name => name !== onlyInClones)

const relation = (spdxElementId: string, relationshipType: string, relatedSpdxElement: string) => ({
  spdxElementId,
  relationshipType,
  relatedSpdxElement,
})

type Named = { name: string; version: string; license?: string | undefined }

function aPackage(id: string, { name, version, license = "NOASSERTION" }: Named, purl: string): Package {
  return {
    SPDXID: `SPDXRef-${id.replaceAll(/[^A-Za-z0-9.-]/g, "-")}`,
    name,
    versionInfo: version,
    downloadLocation: "NOASSERTION",
    filesAnalyzed: false,
    licenseConcluded: "NOASSERTION",
    licenseDeclared: license,
    copyrightText: "NOASSERTION",
    externalRefs: [{ referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: purl }],
  }
}

function npmPackage(path: string, { version, integrity, license }: Locked): Package {
  const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)
  const hash = Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex")
  const purl = `pkg:npm/${name.replace(/^@/, "%40")}@${version}`
  return {
    ...aPackage(`npm-${path}`, { name, version, license }, purl),
    checksums: [{ algorithm: "SHA512", checksumValue: hash }],
  }
}

function packagesOfNode({ architecture, version, packages }: NodeProgram): Package[] {
  const node = version.replace(/^v/, "")
  return [
    aPackage(
      `node-${architecture}`,
      { name: "node", version: node, license: "MIT" },
      `pkg:npm/node-linux-${architecture === "amd64" ? "x64" : architecture}@${node}`,
    ),
    ...packages.map(each =>
      aPackage(
        `deb-${architecture}-${each.name}`,
        each,
        `pkg:deb/debian/${encodeURIComponent(each.name)}@${encodeURIComponent(each.version)}?arch=${architecture}`,
      ),
    ),
  ]
}

/** Where a package finds another: beside it, or beside the one that contains it, and so on up to the top. */
function resolved(from: string, name: string, exists: (path: string) => boolean): string {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`
    if (exists(path)) return path
    if (folder === "") throw new Error(`the lock file has no ${name}, which ${from || "the package"} depends on`)
  }
}
