import { equal } from "../apiserver/equal.ts"
import type { ServedKind, Strategy } from "../apiserver/kind.ts"
import type { Json, Obj } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { printerOf } from "./columns.ts"
import { withDefaults } from "./defaulting.ts"
import type { DefinedVersion } from "./definition.ts"
import { parsePath, valuesAt } from "./json-path.ts"
import { type Props, schemaOf } from "./props.ts"
import { compileRules, type RuledNode, validateRules } from "./rules.ts"
import { duplicatesIn, validateStructure } from "./structural-validation.ts"

const verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]

/** The kinds of a CustomResourceDefinition, one for each served version. The definition must be valid. */
export function customKinds({ metadata, spec }: Json): ServedKind[] {
  const { group, names, scope } = spec
  return (spec.versions as DefinedVersion[])
    .filter(({ served }) => served)
    .map(version => {
      const { status, scale } = version.subresources ?? {}
      const { props, schema, rules } = compiled(version)
      return {
        group,
        version: version.name,
        kind: names.kind,
        listKind: names.listKind ?? `${names.kind}List`,
        plural: names.plural,
        singular: names.singular ?? names.kind.toLowerCase(),
        shortNames: names.shortNames ?? [],
        categories: names.categories ?? [],
        namespaced: scope === "Namespaced",
        verbs,
        subresources: [...(status ? ["status"] : []), ...(scale ? ["scale"] : [])],
        schema,
        strategy: strategyOf({ props, rules, version }),
        printer: printerOf(version.additionalPrinterColumns),
        storage: `${group}/${names.plural}`,
        isCustom: true,
        ...(version.deprecated && { deprecation: deprecationOf(version, spec) }),
        // An object stored with an earlier schema is read with the defaults of this one.
        ...(metadata.generation > 1 && {
          convert: {
            toStorage: (object: Json) => object,
            fromStorage: (stored: Obj) => {
              const apiVersion = `${group}/${version.name}`
              const object = stored.apiVersion === apiVersion ? stored : { ...stored, apiVersion, kind: names.kind }
              return withDefaults(object, props)
            },
          },
        }),
        ...(scale && {
          scale: {
            spec: scale.specReplicasPath,
            status: scale.statusReplicasPath,
            ...(scale.labelSelectorPath && { selector: scale.labelSelectorPath }),
          },
        }),
      }
    })
}

/** The warning for users of an old version, with the newest version that they could use instead. */
function deprecationOf({ name, deprecationWarning }: DefinedVersion, { group, names, versions }: Json): string {
  if (deprecationWarning) return deprecationWarning
  const others = (versions as DefinedVersion[]).filter(each => each.served && !each.deprecated)
  const [newest] = others.map(each => each.name).sort(compareVersions)
  const isNewer = newest !== undefined && compareVersions(newest, name) < 0
  return `${group}/${name} ${names.kind} is deprecated${isNewer ? `; use ${group}/${newest} ${names.kind}` : ""}`
}

/** `v2`, `v1`, `v1beta1`, `v1alpha3`, and then every name that is no Kubernetes version. */
function compareVersions(a: string, b: string): number {
  const rank = (name: string) => {
    const [, major, stage, minor = "0"] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(name) ?? []
    return major === undefined ? [0, 0, 0] : [stage === undefined ? 3 : stage === "beta" ? 2 : 1, +major, +minor]
  }
  const [left, right] = [rank(a), rank(b)]
  const index = left.findIndex((part, i) => part !== right[i])
  return index < 0 ? a.localeCompare(b) : right[index]! - left[index]!
}

type Compiled = { props: Props; schema: ServedKind["schema"]; rules: RuledNode | undefined }

/** By the identity of the stored schema. A status update keeps that object, which saves compiling it again. */
const known = new WeakMap<object, Compiled>()

function compiled(version: DefinedVersion): Compiled {
  const props = version.schema?.openAPIV3Schema ?? { type: "object", "x-kubernetes-preserve-unknown-fields": true }
  let result = known.get(props)
  if (!result) {
    result = { props, schema: schemaOf(props), rules: compileRules(props) }
    known.set(props, result)
  }
  return result
}

function strategyOf({
  props,
  rules,
  version,
}: {
  props: Props
  rules: RuledNode | undefined
  version: DefinedVersion
}): Strategy {
  const hasStatus = Boolean(version.subresources?.status)
  const statusProps = props.properties?.status
  const scale = version.subresources?.scale
  const rest = (object: Json, old: Json): Cause[] => [
    // Duplicates are accepted where the old object already had duplicates.
    ...(old !== undefined && duplicatesIn(old, props, "").length > 0 ? [] : duplicatesIn(object, props, "")),
  ]
  const withRules = (causes: Cause[], object: Json, old: Json): Cause[] => {
    if (!rules) return causes
    // A rule may assume that the object fits the schema.
    return causes.some(({ reason }) => blocking.has(reason))
      ? [...causes, notChecked]
      : [...causes, ...validateRules(rules, object, old)]
  }
  const fields = (version.selectableFields ?? []).map(({ jsonPath }) => ({
    name: jsonPath.replace(/^\./, ""),
    path: parsePath(jsonPath) ?? [],
  }))
  return {
    allowsUnconditionalUpdate: false,
    allowsCreateOnUpdate: false,
    default: object => withDefaults(object, props),
    prepareCreate(object) {
      const next = { ...object, metadata: { ...object.metadata, generation: 1 } }
      if (hasStatus) delete next.status
      // What was sent is dropped, and the default of the schema is read in its place.
      if (hasStatus && statusProps?.default !== undefined)
        next.status = withDefaults(structuredClone(statusProps.default), statusProps)
      return next
    },
    prepareUpdate: (object, old) => (hasStatus ? withStatusOf(object, old) : object),
    ...(hasStatus && {
      prepareStatusUpdate(object: Json, old: Obj) {
        // Of metadata, only managedFields may change here.
        const { managedFields } = object.metadata
        const metadata = {
          ...old.metadata,
          resourceVersion: object.metadata.resourceVersion,
          ...(managedFields && { managedFields }),
        }
        return withStatusOf({ ...old, metadata }, object)
      },
      validateStatusUpdate(object: Json, old: Obj) {
        const structure =
          statusProps && object.status !== undefined
            ? validateStructure(object.status, statusProps, { old: old.status, prefix: "status" })
            : []
        return withRules([...structure, ...validateScale(object, scale), ...rest(object, old)], object, old)
      },
    }),
    validateCreate: object =>
      withRules(
        [...validateStructure(object, props), ...validateScale(object, scale), ...rest(object, undefined)],
        object,
        undefined,
      ),
    validateUpdate: (object, old) =>
      withRules(
        [...validateStructure(object, props, { old }), ...validateScale(object, scale), ...rest(object, old)],
        object,
        old,
      ),
    movesGeneration(object, old) {
      const { metadata: _, ...now } = object
      const { metadata: __, ...before } = old
      return !equal(now, before)
    },
    ...(fields.length > 0 && {
      selectableFields: (object: Obj) =>
        Object.fromEntries(fields.map(({ name, path }) => [name, String(valuesAt(object, path)[0] ?? "")])),
    }),
  }
}

function withStatusOf(object: Json, { status }: Json): Json {
  const { status: _, ...rest } = object
  return status === undefined ? rest : { ...rest, status }
}

const blocking = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
])

const notChecked: Cause = {
  reason: "FieldValueInvalid",
  message:
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
  field: "<nil>",
}

function validateScale(
  object: Json,
  scale: { specReplicasPath: string; statusReplicasPath: string } | undefined,
): Cause[] {
  if (!scale) return []
  return [scale.specReplicasPath, scale.statusReplicasPath].flatMap(path => {
    const [replicas = 0] = valuesAt(object, parsePath(path) ?? [])
    if (typeof replicas !== "number") return []
    const why =
      replicas < 0
        ? "should be a non-negative integer"
        : replicas > 2 ** 31 - 1
          ? `should be less than or equal to ${2 ** 31 - 1}`
          : undefined
    return why ? [{ reason: "FieldValueInvalid", message: `Invalid value: ${replicas}: ${why}`, field: path }] : []
  })
}
