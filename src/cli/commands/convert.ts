import { parseManifests } from "#api/manifest.ts"
import { printable } from "#lib/text.ts"
import { Failure, type Run, UsageError } from "../command.ts"
import { convert, type TargetWords } from "../convert/index.ts"
import { inputName, readText } from "../input.ts"
import { toDocuments } from "../render/yaml.ts"

export const run: Run = async (input, world) => {
  const file = input.options.file as string | undefined
  if (file === undefined) throw new UsageError("which file? Write -f FILE, or -f - for stdin")
  const target = readTarget(input.options.target as string | undefined)
  const { manifests, errors } = parseManifests(await readText(file, world))
  const where = inputName(file)
  if (errors[0]) throw new Failure(`${where}:${errors[0].line}: ${errors[0].message}`)
  if (manifests.length === 0) throw new Failure(`${where} has no manifest`)
  const all = manifests.map(({ value }) => value)
  const conversions = manifests.map(({ value, lineOf }) => ({ ...convert(value, target, all), lineOf }))
  const said = (lineOf: (path: string) => number, path: string, message: string) =>
    printable(`${where}:${lineOf(path)}: ${path ? `${path}: ` : ""}${message}`)

  // All or nothing: half a file piped into kubectl would be worse than none.
  const problems = conversions.flatMap(each =>
    each.ok ? [] : each.problems.map(({ path, message }) => said(each.lineOf, path, message)),
  )
  if (problems.length > 0) throw new Failure(problems.join("\n"))
  const converted = conversions.filter(each => each.ok)
  for (const { lineOf, remarks } of converted)
    for (const { path, message } of remarks) world.say(said(lineOf, path, message))
  const once = (texts: readonly string[]) => [...new Set(texts)]
  const allowances = once(converted.flatMap(each => each.allowances ?? []))
  if (allowances.length > 0) world.say(`flags that aim controller needs: ${allowances.join(" ")}`)
  for (const note of once(converted.flatMap(each => each.notes ?? []))) world.say(note)
  return { text: toDocuments(converted.flatMap(({ objects }) => objects)), exitCode: 0 }
}

function readTarget(text: string | undefined): TargetWords | undefined {
  if (text === undefined) return undefined
  const parts = text.split("/")
  if (parts.length !== 3 || parts.some(part => part === ""))
    throw new UsageError(`--target: ${text} is not GROUP/VERSION/KIND, such as services.example.com/v1alpha1/Dicom`)
  const [group, version, kind] = parts as [string, string, string]
  return { apiVersion: `${group}/${version}`, kind }
}
