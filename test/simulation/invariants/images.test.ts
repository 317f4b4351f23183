import { expect, test } from "vitest"
import { sameImage } from "./images.ts"

const digest = `sha256:${"a".repeat(64)}`

const same: [string, string][] = [
  ["app:v1", "docker.io/library/app:v1"],
  ["app", "index.docker.io/library/app:latest"],
  ["team/app:v1", "docker.io/team/app:v1"],
  ["Quay.io/team/app:v1", "quay.io/team/app:v1"],
  ["localhost/app", "localhost/app:latest"],
  [`quay.io/app:v1@${digest}`, `quay.io/app@${digest}`],
  ["mirror.example.com:5000/app", "mirror.example.com:5000/app:latest"],
]
const different: [string, string][] = [
  ["app:v1", "app:v2"],
  ["app:v1", "team/app:v1"],
  ["quay.io/app:v1", "docker.io/library/app:v1"],
  ["app:v1", `app:v1@${digest}`],
  ["", "app"],
]

for (const [a, b] of same) test(`${a} is ${b}`, () => expect(sameImage(a, b)).toBe(true))
for (const [a, b] of different) test(`"${a}" is not "${b}"`, () => expect(sameImage(a, b)).toBe(false))
