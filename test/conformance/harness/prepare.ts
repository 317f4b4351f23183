import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import { repository } from "#tools/kube/folders.ts"
import { gatewayApiDefinitions } from "../../../src/cluster-sim/gateway-api/definitions.ts"
import { type Ground, whole } from "./floor.ts"
import type { Json } from "./script.ts"

const ours = "charts/aim/crds"
const files = [...readdirSync(join(repository, ours)).map(file => join(ours, file)), "examples/dicom/crd.yaml"]
const definitions = (): Json[] => [
  ...files.map(file => parse(readFileSync(join(repository, file), "utf8"))),
  ...gatewayApiDefinitions,
]

/** Teaches a floor our own kinds, from the files that users apply, and those of the Gateway API. */
export async function prepare(ground: Ground): Promise<void> {
  const signal = AbortSignal.timeout(300_000)
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
  const headers = { accept: "application/json", "content-type": "application/apply-patch+yaml" }
  for (const definition of definitions()) {
    const { name } = definition.metadata
    const path = `${crds}/${name}?fieldManager=conformance&force=true`
    const applied = await whole(
      await ground.send({ method: "PATCH", path, headers, body: JSON.stringify(definition), signal }),
    )
    if (applied.status >= 400) throw new Error(`${ground.name}: ${name}: ${applied.body?.message}`)
    for (;;) {
      const { group, names, versions } = definition.spec
      const listed = await whole(
        await ground.send({
          method: "GET",
          path: `/apis/${group}/${versions[0].name}/${names.plural}`,
          headers: {},
          signal,
        }),
      )
      if (listed.status === 200) break
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }
}
