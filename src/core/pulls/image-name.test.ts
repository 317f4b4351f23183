import { expect, test } from "vitest"
import { joinImage, splitImage } from "./image-name.ts"

const digest = `sha256:${"0123456789abcdef".repeat(4)}`
const cases: Record<string, { name: string; tag: string; host: string }> = {
  "nginx:1": { name: "nginx", tag: "1", host: "docker.io" },
  [`nginx@${digest}`]: { name: "nginx", tag: digest, host: "docker.io" },
  [`quay.io/team/app:v2@${digest}`]: { name: "quay.io/team/app", tag: `v2@${digest}`, host: "quay.io" },
  "Registry.example.com:5000/team/app:v2": {
    name: "Registry.example.com:5000/team/app",
    tag: "v2",
    host: "registry.example.com:5000",
  },
}
for (const [image, split] of Object.entries(cases))
  test(`${image} is split and joined again`, () => {
    expect(splitImage(image)).toEqual(split)
    expect(joinImage(split)).toBe(image)
  })

test("an image without a tag is the latest", () =>
  expect(splitImage("nginx")).toEqual({ name: "nginx", tag: "latest", host: "docker.io" }))

test("what is no image is not split", () => expect(splitImage("a b")).toBeUndefined())
