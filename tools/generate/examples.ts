import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { parse } from "yaml"
import type { GeneratedFile } from "./file.ts"

const folder = join(import.meta.dirname, "../../examples/dicom")

/** The example's kind once more, as `aim demo` carries it: a bundle can hold JSON, and has no files beside it. */
export async function exampleFiles(): Promise<GeneratedFile[]> {
  const definition = parse(await readFile(join(folder, "crd.yaml"), "utf8"))
  return [{ path: join(folder, "crd.generated.json"), content: `${JSON.stringify(definition)}\n` }]
}
