import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import { manifests } from "#cli/manifests/all.ts"
import { sources } from "#cli/manifests/sources.ts"
import packageManifest from "../../package.json" with { type: "json" }
import { inRepository } from "./file.ts"

const read = (path: string) => readFileSync(inRepository(`charts/aim/${path}`), "utf8")

type Release = { namespace: string; values: { image: string; for: { plural: string; group: string }[] } }

/** As much of Helm as the templates use; anything else in braces is refused. */
function render(template: string, { namespace, values }: Release): string {
  const text = template
    .replaceAll(/\{\{- range \.Values\.for \}\}(.*?)\{\{- end \}\}/gs, (_, body: string) =>
      values.for
        .map(({ plural, group }) => body.replaceAll("{{ .plural }}", plural).replaceAll("{{ .group }}", group))
        .join(""),
    )
    .replaceAll(/\{\{- if \.Capabilities\.APIVersions\.Has "[^"]+" \}\}(.*?)\{\{- end \}\}/gs, "$1")
    .replaceAll("{{ .Release.Namespace | quote }}", JSON.stringify(namespace))
    .replaceAll("{{ .Values.image | quote }}", JSON.stringify(values.image))
  expect(text).not.toContain("{{")
  return text
}

const documents = (text: string) => parseAllDocuments(text).map(document => document.toJS())

test("the chart is one: its own page, the values that its templates use, and CRDs where Helm looks for them", () => {
  expect(parse(read("Chart.yaml"))).toEqual({
    apiVersion: "v2",
    name: "aim",
    description: packageManifest.description,
    type: "application",
    version: packageManifest.version,
    appVersion: packageManifest.version,
  })
  expect(parse(read("values.yaml"))).toEqual({ image: `autoimagemanager/aim:${packageManifest.version}`, for: [] })
  const used = readdirSync(inRepository("charts/aim/templates")).flatMap(
    file => read(join("templates", file)).match(/\.Values\.\w+/g) ?? [],
  )
  expect(new Set(used)).toEqual(new Set([".Values.image", ".Values.for"]))
})

test("the chart installs what aim manifests prints, for another namespace, image and kinds too", () => {
  const kinds = [
    { plural: "dicoms", group: "services.example.com" },
    { plural: "shops", group: "example.org" },
  ]
  const image = "registry.example.com:5000/team/aim:1@sha256:0123"
  const release = { namespace: "123", values: { image, for: kinds } }
  const templates = readdirSync(inRepository("charts/aim/templates")).map(file => join("templates", file))
  const crds = readdirSync(inRepository("charts/aim/crds")).map(file => join("crds", file))
  const installed = [...templates, ...crds].flatMap(file => documents(render(read(file), release)))
  const printed = manifests({ section: "all", foreign: kinds, namespace: "123", image }, sources())
  const sorted = (all: object[]) => all.map(each => JSON.stringify(each)).sort()
  expect(sorted(installed)).toEqual(sorted(printed.filter(({ kind }) => kind !== "Namespace")))
})
