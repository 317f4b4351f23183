import { expect, test } from "vitest"
import { collectionRisk, diskProblem } from "./disk.ts"

const gib = 2 ** 30

test("a pull fits as long as the disk stays at the kubelet's threshold", () => {
  expect(diskProblem({ sizeBytes: 100 * gib, freeBytes: 20 * gib }, 5 * gib, 85)).toBeUndefined()
  expect(diskProblem({ sizeBytes: 100 * gib, freeBytes: 20 * gib }, 6 * gib, 85)).toBe(
    "20.0 GiB of 100.0 GiB are free and 6.0 GiB more to come: 86 % used, and the kubelet removes images above 85 %",
  )
})

test("a disk that is over the threshold takes nothing more", () =>
  expect(diskProblem({ sizeBytes: 10 * gib, freeBytes: gib }, 0, 85)).toBe(
    "1.0 GiB of 10.0 GiB are free: 90 % used, and the kubelet removes images above 85 %",
  ))

test("an unused image is at risk where less than five points are left to the threshold", () => {
  const disk = (free: number) => ({ sizeBytes: 100 * gib, freeBytes: free * gib })
  expect(collectionRisk(disk(20), 85)).toBeUndefined()
  expect(collectionRisk(disk(19), 85)).toBe(
    "no container uses it, and 81 % of the disk are used: above 85 % the kubelet removes such images",
  )
  expect(collectionRisk(disk(10), 85)).toBeDefined()
  // With this threshold the kubelet removes nothing.
  expect(collectionRisk(disk(0), 100)).toBeUndefined()
  expect(collectionRisk({ sizeBytes: 0, freeBytes: 0 }, 85)).toBeUndefined()
})

test("a disk of unknown size refuses nothing", () =>
  expect(diskProblem({ sizeBytes: 0, freeBytes: 0 }, gib, 85)).toBeUndefined())
