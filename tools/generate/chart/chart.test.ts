import { readdirSync, readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { parse } from "yaml"
import packageManifest from "../../../package.json" with { type: "json" }
import { inRepository } from "../file.ts"

// What the chart installs is compared with what aim manifests prints by Helm itself: test/e2e/helm.test.ts.

const read = (path: string) => readFileSync(inRepository(`charts/aim/${path}`), "utf8")

test("the chart has the version of the package, for the chart and for what it installs", () => {
  expect(parse(read("Chart.yaml"))).toMatchObject({
    apiVersion: "v2",
    name: "aim",
    version: packageManifest.version,
    appVersion: packageManifest.version,
  })
})

test("every value has a default, a comment and a schema, and its templates use it and no other", () => {
  const values = parse(read("values.yaml"))
  expect(values).toMatchObject({ image: `autoimagemanager/aim:${packageManifest.version}`, replicas: 1, for: [] })
  const names = Object.keys(values).sort()
  const used = readdirSync(inRepository("charts/aim/templates")).flatMap(file =>
    [...read(`templates/${file}`).matchAll(/\.Values\.(\w+)/g)].map(([, name]) => name),
  )
  expect([...new Set(used)].sort()).toEqual(names)
  const schema = JSON.parse(read("values.schema.json"))
  expect(Object.keys(schema.properties).sort()).toEqual([...names, "global"].sort())
  expect(schema.additionalProperties).toBe(false)
  expect(read("values.yaml").match(/^# [A-Z].*\n(?=\w)/gm)).toHaveLength(names.length)
})
