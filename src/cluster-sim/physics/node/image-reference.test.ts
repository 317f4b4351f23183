import { expect, test } from "vitest"
import { parseImage } from "./image-reference.ts"

const digest = `sha256:${"ab".repeat(32)}`
const cases: Record<string, string> = {
  nginx: "docker.io/library/nginx:latest",
  "nginx:1.25": "docker.io/library/nginx:1.25",
  "shop/web:1": "docker.io/shop/web:1",
  "index.docker.io/library/nginx:1": "docker.io/library/nginx:1",
  "localhost/web:1": "localhost/web:1",
  "127.0.0.1:5000/web": "127.0.0.1:5000/web:latest",
  "[::1]:5000/web:1": "[::1]:5000/web:1",
  "ghcr.io/a/b/c:v1.0-rc.1": "ghcr.io/a/b/c:v1.0-rc.1",
  [`ghcr.io/a/b@${digest}`]: `ghcr.io/a/b@${digest}`,
  [`ghcr.io/a/b:1@${digest}`]: `ghcr.io/a/b@${digest}`,
  "good.test/UPPER:1": "invalid reference format: repository name (UPPER) must be lowercase",
  Web: "invalid reference format: repository name (library/Web) must be lowercase",
  "web:bad tag": "invalid reference format",
  "web@sha256:short": "invalid reference format",
  "a//b": "invalid reference format",
  "": "invalid reference format",
}

for (const [image, want] of Object.entries(cases))
  test(`${image || "nothing"} is ${want}`, () => {
    const parsed = parseImage(image)
    expect("invalid" in parsed ? parsed.invalid : parsed.name).toBe(want)
  })
