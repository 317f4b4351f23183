import { describe, expect, test } from "vitest"
import { type Address, detailsAddress, formatAddress, overviewAddress, parseAddress, toggled } from "./address.ts"

const object = { kind: "canaries", namespace: "shop", name: "web" }
const cases: Record<string, { address: Address; query: string }> = {
  "the overview": { address: overviewAddress, query: "?" },
  "a search": {
    address: {
      ...overviewAddress,
      overview: { search: "a b&c", kinds: ["canaries"], states: ["Halted", "Stalled"], sort: "name" },
    },
    query: "?search=a+b%26c&kinds=canaries&states=Halted,Stalled&sort=name",
  },
  "an object": { address: detailsAddress(object), query: "?kind=canaries&namespace=shop&name=web" },
  "a selected object of the default tier, in a list": {
    address: {
      ...detailsAddress({ kind: "serviceimages", namespace: "", name: "dicom" }),
      ...{
        cells: { states: ["Failed"], tier: "", namespace: "shop", name: "x" },
        show: "list",
        selected: "shop/dicom-1",
      },
    },
    query: "?kind=serviceimages&name=dicom&state=Failed&tier=&in-namespace=shop&named=x&show=list&object=shop/dicom-1",
  },
}
describe("an address says what is shown", () => {
  for (const [name, { address, query }] of Object.entries(cases)) {
    test(`${name}: written`, () => expect(formatAddress(address)).toBe(query))
    test(`${name}: read`, () => expect(parseAddress(query)).toEqual({ address, unknown: [] }))
  }
})

test("what an address has in addition is named", () => {
  const { address, unknown } = parseAddress("?kind=serviceimages&name=a&colour=red&show=pie&sort=size&constructor=1")
  expect(unknown).toEqual(["colour", "show=pie", "sort=size", "constructor"])
  expect(address).toEqual(detailsAddress({ kind: "serviceimages", namespace: "", name: "a" }))
})

test("a filter is set and taken back", () => {
  expect(toggled(["a"], "b")).toEqual(["a", "b"])
  expect(toggled(["a", "b"], "a")).toEqual(["b"])
})
