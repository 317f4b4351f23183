import { describe, expect, test } from "vitest"
import type { Upgrade } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import { PreCachingConfig } from "#api/v1alpha1/precachingconfig/index.ts"
import {
  imageFields,
  mappedImage,
  mappedManifest,
  type PrecacheSource,
  parseSpace,
  precacheImages,
} from "./precache-images.ts"

const apiVersion = "autoimagemanager.io/v1alpha1" as const
const serviceImage = {
  apiVersion,
  kind: "ServiceImage" as const,
  metadata: { name: "dicom" },
  spec: {
    defaultImage: "r.example.com/dicom:2",
    tiers: [{ upgradeTier: "early", image: "r.example.com/dicom:3" }, {}],
  },
}
const list = {
  apiVersion,
  kind: "ImageListPullJob" as const,
  metadata: { name: "tools", namespace: "a" },
  spec: { images: ["r.example.com/debug:1", "r.example.com/dicom:2"] },
}
const upgrades: Upgrade[] = [{ name: "dicom", manifests: [serviceImage, list], soakSeconds: 0 }]
const config = (spec: object): PrecacheSource => ({ config: PreCachingConfig.spec.parse(spec) as never })

const cases: Record<string, { source: PrecacheSource; gives: string[] | string; space?: number }> = {
  "what the upgrades name, each once": {
    source: {},
    gives: ["r.example.com/dicom:2", "r.example.com/dicom:3", "r.example.com/debug:1"],
  },
  "patterns exclude what is derived, and nothing else": {
    source: config({ excludePrecachePatterns: ["debug", ":3$"], additionalImages: ["r.example.com/debug:9"] }),
    gives: ["r.example.com/dicom:2", "r.example.com/debug:9"],
  },
  "overrides take the place of what is derived, and no pattern excludes them": {
    source: config({ overrides: { images: ["x:1"] }, excludePrecachePatterns: ["x"] }),
    gives: ["x:1"],
  },
  "the ConfigMap of the original": {
    source: { overrides: { excludePrecachePatterns: " debug \n\n:3$", "precache.spaceRequired": "30 GB" } },
    gives: ["r.example.com/dicom:2"],
    space: 28,
  },
  "a PreCachingConfig counts before the ConfigMap": {
    source: {
      ...config({ excludePrecachePatterns: ["dicom"], spaceRequired: "35 GiB" }),
      overrides: { excludePrecachePatterns: "debug" },
    },
    gives: ["r.example.com/debug:1"],
    space: 35,
  },
  "additional images alone are enough": {
    source: config({ excludePrecachePatterns: ["."], additionalImages: ["x:1"] }),
    gives: ["x:1"],
  },
  "nothing is left": { source: config({ excludePrecachePatterns: ["."] }), gives: "PrecacheSpecIncomplete" },
  "a pattern that is none": { source: config({ excludePrecachePatterns: ["("] }), gives: "InvalidPreCachingConfig" },
  "a size that is none": {
    source: { overrides: { "precache.spaceRequired": "much" } },
    gives: "InvalidPreCachingConfig",
  },
}

describe("what is pre-cached", () => {
  for (const [name, { source, gives, space }] of Object.entries(cases))
    test(name, () => {
      const found = precacheImages(upgrades, source)
      expect(found.ok ? found.images : found.reason).toEqual(gives)
      if (found.ok) expect(found.spaceRequiredGiB).toBe(space)
    })
})

test("sizes are whole GiB, rounded up", () => {
  expect(["45 GiB", "30GB", "1 GB", "0 GiB", "5 MiB", "GiB", "35"].map(parseSpace)).toEqual([
    45,
    28,
    1,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

test("a mapping replaces the longest beginning, in every field with an image and nowhere else", () => {
  const mapping = [
    { from: "r.example.com/", to: "north.example.com/" },
    { from: "r.example.com/debug", to: "d.example.com/tools" },
  ]
  expect(mappedImage("r.example.com/debug:1", mapping)).toBe("d.example.com/tools:1")
  expect(mappedImage("other.example.com/r.example.com/a", mapping)).toBe("other.example.com/r.example.com/a")
  const mapped = mappedManifest(serviceImage, mapping)
  expect(imageFields(mapped).map(({ image }) => image)).toEqual([
    "north.example.com/dicom:2",
    "north.example.com/dicom:3",
  ])
  expect(mapped.metadata).toEqual(serviceImage.metadata)
  expect(serviceImage.spec.defaultImage).toBe("r.example.com/dicom:2")
})
