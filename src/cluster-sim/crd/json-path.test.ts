import { expect, test } from "vitest"
import { parsePath, valuesAt } from "./json-path.ts"

const object = {
  spec: {
    a: 1,
    list: [
      { k: "x", n: 1 },
      { k: "y", n: 2 },
    ],
    "dotted.name": "d",
  },
  status: {
    conditions: [
      { type: "Ready", status: "True" },
      { type: "Other", status: "False" },
    ],
  },
}
const paths: Record<string, unknown[]> = {
  ".spec.a": [1],
  "spec.a": [1],
  ".spec.list[1].k": ["y"],
  ".spec.list[-1].k": ["y"],
  ".spec.list[*].k": ["x", "y"],
  ".spec.list[-1:].k": ["y"],
  ".spec.list[:1].k": ["x"],
  ".spec.list[0:2].k": ["x", "y"],
  ".spec['dotted.name']": ["d"],
  ".spec.dotted\\.name": ["d"],
  '.status.conditions[?(@.type=="Ready")].status': ["True"],
  ".status.conditions[?(@.type=='Ready')].status": ["True"],
  '.status.conditions[?(@.type != "Ready")].status': ["False"],
  ".spec.list[?(@.n==2)].k": ["y"],
  ".spec.none.at.all": [],
  ".spec.list[7]": [],
  ".spec.a.b": [],
}
for (const [path, found] of Object.entries(paths))
  test(path, () => expect(valuesAt(object, parsePath(path)!)).toEqual(found))

for (const path of [".spec[", ".spec[?(@.a)]", "..a", ".spec]"])
  test(`${path} is no path`, () => expect(parsePath(path)).toBeUndefined())
