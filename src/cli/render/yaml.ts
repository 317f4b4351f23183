import { stringify } from "yaml"

/** One document. Quoted where YAML 1.1, which kubectl reads, would read a word as a boolean or an octal number. */
export const toYaml = (value: unknown): string =>
  stringify(value, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false })

/** Documents for `kubectl apply -f -`. */
export const toDocuments = (values: readonly unknown[]): string => values.map(value => `---\n${toYaml(value)}`).join("")
