import { expect, test } from "vitest"
import { cases } from "#test/support/manifests/serviceimage.ts"
import { validate } from "../../validate.ts"
import { ServiceImage } from "./index.ts"

for (const [name, { manifest, old, refused, warned }] of Object.entries(cases))
  test(name, () => {
    const { errors, warnings, object } = validate(ServiceImage, manifest, { old })
    const said = (problems: typeof errors) => problems.map(({ path, message }) => `${path}: ${message}`)
    if (refused) {
      const { path, words } = refused
      expect(said(errors.filter(error => error.path === path && error.message.includes(words)))).toHaveLength(1)
      expect(said(errors)).toHaveLength(1)
    } else {
      expect(said(errors)).toEqual([])
      // The type we read objects as and the schema the server applies come from one declaration, by two ways.
      expect(ServiceImage.spec.parse(object?.spec)).toEqual(object?.spec)
    }
    expect(warnings.map(warning => warning.path)).toEqual(warned ? [warned.path] : [])
    if (warned) expect(warnings[0]?.message).toContain(warned.words)
  })
