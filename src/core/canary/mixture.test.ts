import { expect, test } from "vitest"
import { isMixture } from "./mixture.ts"

// Where both revisions have the name of one workload.
test.each([
  ["up", false],
  ['sum(rate(x{app="web"}[{{ interval }}]))', false],
  ['x{workload="{{ target }}"}', true],
  ['x{workload="{{target}}"}', true],
  ['x{workload="{{- target -}}"}', true],
  ['x{workload="{{ source }}"}', true],
  ['x{workload="{{ target }}", controller_revision_hash="{{ revision }}"}', false],
  ['x{pod=~"{{ target }}-[0-9]{1,3}", controller_revision_hash="{{ revision }}"}', false],
  ['x{controller_revision_hash="{{ revision }}"}', false],
  ['x{service="{{ target }}-canary"}', false],
  ['x{service="{{ target }}-canary-2"}', true],
  ['x{service="{{ service }}-canary"}', false],
  // Each selector is about one revision: a part of all over a part of one is a mixture, too.
  ['x{a="{{ target }}", r="{{ revision }}"} / x{a="{{ target }}"}', true],
  ['x{a="{{ target }}", r="{{ revision }}"} / x{a="{{ target }}", r="{{ revision }}"}', false],
  // Not every metric service has selectors.
  ["avg:requests by {{ target }}", true],
  ["avg:requests by {{ target }} and {{ revision }}", false],
])("%s", (query, isMixed) => expect(isMixture(query)).toBe(isMixed))
