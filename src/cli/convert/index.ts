import { kinds } from "#api/kinds.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { group } from "#api/v1alpha1/group.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { argo, argoKinds } from "./argo.ts"
import { flagger, flaggerKinds } from "./flagger.ts"
import { type Conversion, isObject, type Json, judged, type Remark } from "./judged.ts"
import { openKruise, openKruiseKinds } from "./openkruise.ts"

/** The kind that a ServiceImage stamps, which the original did not name. */
export type TargetWords = { apiVersion: string; kind: string }

const convertible = [
  "AlternateImageSource of kuiper.fairwinds.com and saffire.fairwinds.com",
  "ServiceImage of any group",
  `${openKruiseKinds.join(", ")} of apps.kruise.io (v1alpha1, v1beta1)`,
  `${flaggerKinds.join(", ")} of flagger.app/v1beta1`,
  `${argoKinds.join(", ")} of argoproj.io/v1alpha1`,
].join(", ")

/**
 * Converts a manifest of the originals into one of ours, validated as on the server, with a remark on everything lost.
 * `beside` are all manifests of the file: some say what belongs together only there.
 */
export function convert(value: unknown, target?: TargetWords, beside: readonly unknown[] = []): Conversion {
  const { apiVersion, kind } = isObject(value) ? value : {}
  const from = typeof apiVersion === "string" ? (apiVersion.split("/")[0] ?? "") : ""
  if (isObject(value) && from === group && kinds.some(each => each.kind === kind))
    return judged(kinds.find(each => each.kind === kind)!, value, value.spec, [])
  if (isObject(value) && kind === AlternateImageSource.kind && /^(kuiper|saffire)\.fairwinds\.com$/.test(from))
    return alternateImageSource(value)
  const openKruises = isObject(value) ? openKruise(value) : undefined
  if (openKruises) return openKruises
  const flaggers = isObject(value) ? flagger(value) : undefined
  if (flaggers) return flaggers
  const argos = isObject(value) ? argo(value, beside) : undefined
  if (argos) return argos
  if (isObject(value) && kind === ServiceImage.kind) return serviceImage(value, target)
  const found = isObject(value) ? `${kind ?? "no kind"} of ${apiVersion ?? "no apiVersion"}` : "no object"
  return { ok: false, problems: [{ path: "", message: `${found} cannot be converted; these can: ${convertible}` }] }
}

function alternateImageSource(value: Json): Conversion {
  const remarks: Remark[] = [
    {
      path: "spec",
      message:
        "pods are repaired now, and workloads are left as they are; policy.apply: Template changes workloads as before",
    },
  ]
  const spec = isObject(value.spec) ? { ...value.spec } : value.spec
  if (isObject(spec) && Array.isArray(spec.imageSourceReplacements))
    spec.imageSourceReplacements = spec.imageSourceReplacements.map((each, index) => {
      if (!isObject(each) || !Array.isArray(each.targets)) return each
      const path = `spec.imageSourceReplacements[${index}].targets`
      return { ...each, targets: each.targets.map((target, at) => targetOf(target, `${path}[${at}]`, remarks)) }
    })
  return judged(AlternateImageSource, value, spec, remarks)
}

function targetOf(target: unknown, path: string, remarks: Remark[]): unknown {
  if (!isObject(target)) return target
  const { uid, container, type, ...rest } = target
  if (uid) remarks.push({ path: `${path}.uid`, message: "dropped: a workload is identified by its name" })
  const { group: written } = isObject(type) ? type : {}
  const isVersioned = typeof written === "string" && written.includes("/")
  if (isVersioned) remarks.push({ path: `${path}.type.group`, message: "the version is dropped" })
  return {
    ...rest,
    type: isVersioned && isObject(type) ? { ...type, group: written.split("/")[0] } : type,
    ...(container ? { container } : {}),
  }
}

function serviceImage(value: Json, given: TargetWords | undefined): Conversion {
  const { spec, apiVersion } = value
  const own = isObject(spec) ? spec.target : undefined
  const labels = isObject(value.metadata) && isObject(value.metadata.labels) ? value.metadata.labels : {}
  const { service } = labels
  const guessed =
    typeof service === "string" && service !== ""
      ? { apiVersion, kind: service[0]!.toUpperCase() + service.slice(1) }
      : undefined
  const target = given ?? own ?? guessed
  if (target === undefined)
    return {
      ok: false,
      problems: [{ path: "spec.target", message: "the kind to stamp is missing: write --target GROUP/VERSION/KIND" }],
    }
  const remarks: Remark[] =
    target === guessed
      ? [
          {
            path: "spec.target",
            message: `guessed from the label service: ${guessed.kind} of ${apiVersion}; --target GROUP/VERSION/KIND overrides it`,
          },
        ]
      : []
  return judged(ServiceImage, value, isObject(spec) ? { target, ...spec, ...(given && { target }) } : spec, remarks)
}
