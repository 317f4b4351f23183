import { readdir, readFile } from "node:fs/promises"

/** What the source says of a field that the published schema does not. */
export type GoField = {
  /** As the decoder names it in a refusal: `int32`, `v1.RestartPolicy`, `[]v1.Container`. */
  goType: string
  /** What is written when the field has no value; undefined: nothing is. */
  zero?: unknown
  /** A field that holds only its zero value is not written. */
  omitsZero: boolean
}

/** The structs of Kubernetes' API packages, by the name the published schema gives them. */
export async function readGoStructs(folders: Record<string, string>): Promise<Map<string, Map<string, GoField>>> {
  const packages = [
    ...(await versionsIn(`${folders["k8s.io/api"]}`)).map(([folder, name]) => ({ folder, name: `io.k8s.api.${name}` })),
    { folder: `${folders["k8s.io/apimachinery"]}/pkg/apis/meta/v1`, name: "io.k8s.apimachinery.pkg.apis.meta.v1" },
    {
      folder: `${folders["k8s.io/apiextensions-apiserver"]}/pkg/apis/apiextensions/v1`,
      name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    },
  ]
  const all = new Map<string, Map<string, GoField>>()
  for (const { folder, name } of packages) {
    const files = (await readdir(folder)).filter(file => /^types.*\.go$/.test(file) && !/swagger_doc|_test/.test(file))
    const source = (await Promise.all(files.map(file => readFile(`${folder}/${file}`, "utf8")))).join("\n")
    for (const [struct, fields] of structsOf(source, folder.slice(folder.lastIndexOf("/") + 1)))
      all.set(`${name}.${struct}`, fields)
  }
  return all
}

async function versionsIn(folder: string): Promise<[string, string][]> {
  const groups = (await readdir(folder, { withFileTypes: true })).filter(entry => entry.isDirectory())
  const found = await Promise.all(
    groups.map(async group =>
      (await readdir(`${folder}/${group.name}`))
        .filter(version => /^v\d+$/.test(version))
        .map((version): [string, string] => [`${folder}/${group.name}/${version}`, `${group.name}.${version}`]),
    ),
  )
  return found.flat()
}

/** Reads struct declarations; comments and everything else is passed over. */
export function structsOf(source: string, version: string): Map<string, Map<string, GoField>> {
  const lists = new Set([...source.matchAll(/^type (\w+) (?:map\[|\[\])/gm)].map(([, name = ""]) => name))
  const bodies = new Map(
    [...source.matchAll(/^type (\w+) struct \{\n(.*?)^\}/gms)].map(([, name = "", body = ""]) => [name, body]),
  )
  const fieldsOf = (body: string): [string, GoField][] =>
    body.split("\n").flatMap((line): [string, GoField][] => {
      const inline = /^\s+(?:\w+\.)?(\w+)\s+`json:",inline"/.exec(line)
      if (inline) return fieldsOf(bodies.get(inline[1]!) ?? "")
      const field = /^\s+(?:[A-Z]\w*\s+)?([\w.*[\]]+)\s+`.*?json:"([^",]+)((?:,\w+)*)"/.exec(line)
      if (!field) return []
      const [, type = "", name = "", options = ""] = field
      return [[name, { goType: goTypeOf(type, version), ...written({ type, options, lists }) }]]
    })
  return new Map([...bodies].map(([name, body]) => [name, new Map(fieldsOf(body))]))
}

/**
 * Pointers, and anything marked omitempty but a struct, are absent when they are empty; omitempty does nothing for a
 * struct (`resources: {}`), nor for a time, which is then null. Which names are scalars, the schema knows.
 */
function written({
  type,
  options,
  lists,
}: {
  type: string
  options: string
  lists: Set<string>
}): Omit<GoField, "goType"> {
  const omits = options.includes("omitempty")
  if (options.includes("omitzero")) return { omitsZero: false }
  if (type.startsWith("*")) return omits ? { omitsZero: false } : { zero: null, omitsZero: false }
  const name = type.slice(type.lastIndexOf(".") + 1)
  if (/^(\[\]|map\[)/.test(type) || lists.has(name) || name === "ResourceList")
    return omits ? { omitsZero: true } : { zero: null, omitsZero: false }
  if (["Time", "MicroTime", "RawExtension", "JSON"].includes(name)) return { zero: null, omitsZero: false }
  return { zero: {}, omitsZero: omits }
}

/** `*metav1.LabelSelector` → `v1.LabelSelector`, as reflection prints it. */
function goTypeOf(type: string, version: string): string {
  const [, prefix = "", key = "", name = ""] = /^\*?((?:\[\]|map\[(\S+?)\])*)\*?(\S+)$/.exec(type) ?? []
  const qualified = (word: string) => {
    if (/^(string|bool|byte|u?int\d*|float\d+)$/.test(word)) return word === "byte" ? "uint8" : word
    if (!word.includes(".")) return `${version}.${word}`
    const [alias = "", last = ""] = word.split(".")
    return `${/v\d+$/.exec(alias)?.[0] ?? alias}.${last}`
  }
  return key ? `map[${qualified(key)}]${qualified(name)}` : `${prefix}${qualified(name)}`
}
