import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { parseAllDocuments } from "yaml"
import { apiVersionOf } from "#runtime/resource.ts"
import { dicomController } from "./controller.ts"
import { Dicoms } from "./dicom.ts"

type Manifest = { apiVersion: string; kind: string; spec: Record<string, unknown>; rules?: Rule[] }
type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] }

const read = (file: string): Manifest[] =>
  parseAllDocuments(readFileSync(join(import.meta.dirname, file), "utf8")).map(document => document.toJS())

test("rbac.yaml grants what the controller declares, and no more", () => {
  const { rules = [] } = read("rbac.yaml").find(({ kind }) => kind === "ClusterRole") ?? {}
  const declared = dicomController().permissions.map(({ resource: { group, plural }, subresource, verbs }) => ({
    apiGroups: [group],
    resources: [subresource ? `${plural}/${subresource}` : plural],
    verbs: [...verbs],
  }))
  expect(rules).toEqual(declared)
})

test("the manifests speak of the kind the controller watches", () => {
  const kind = { apiVersion: apiVersionOf(Dicoms), kind: Dicoms.kind }
  expect(read("serviceimage.yaml")[0]?.spec.target).toEqual(kind)
  for (const dicom of read("dicoms.yaml")) expect(dicom).toMatchObject(kind)
  expect(read("crd.yaml")[0]?.spec).toMatchObject({
    group: Dicoms.group,
    names: { kind: Dicoms.kind, plural: Dicoms.plural },
    versions: [{ name: Dicoms.version }],
  })
})
