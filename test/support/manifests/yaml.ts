/** Scalars on which YAML parsers differ, and what kubectl reads. A unit test asks ours, test/e2e/crd.test.ts asks kubectl. */
export const scalars: Record<string, unknown> = {
  yes: true,
  Off: false,
  y: true,
  N: false,
  "~": null,
  "012": 10,
  "0o12": 10,
  "08": 8,
  "0x1F": 31,
  "0b11": 3,
  "1_000": 1000,
  "12:30": "12:30",
  "190:20:30.5": "190:20:30.5",
  "2026-01-31": "2026-01-31",
  "2026-01-31T12:00:00Z": "2026-01-31T12:00:00Z",
  "1e3": 1000,
  "1.10": 1.1,
  ".5": 0.5,
  "+5": 5,
  "10%": "10%",
  '"yes"': "yes",
  "!!str 5": "5",
  "=": "=",
  "{<<: {a: 1}, b: 2}": { a: 1, b: 2 },
}

/** All of them in one object, whose values stand under `values`. */
export const scalarsManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: scalars}
values:
${Object.keys(scalars)
  .map(scalar => `- ${scalar}`)
  .join("\n")}
`
