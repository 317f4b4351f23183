import type { Kind } from "#api/kind.ts"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { validate } from "#api/validate.ts"
import { addressesOf, addressesOfProvider, addressesOfTemplate, type NamedAddress } from "#core/canary/addresses.ts"
import { type Finding, findingsOf, findingsOfTemplate } from "#core/canary/findings.ts"
import { foresee } from "#egress/index.ts"
import { differencesOf, differencesOfTemplate, leftOf, ofPrimary, sharedNamespaces } from "./flagger-remarks.ts"
import { type Conversion, isObject, type Json, judged, type Remark } from "./judged.ts"

const flaggerVersion = "flagger.app/v1beta1"

const converters: Readonly<Record<string, (value: Json) => Conversion>> = {
  Canary: canary,
  MetricTemplate: metricTemplate,
  AlertProvider: alertProvider,
}

export const flaggerKinds = Object.keys(converters)

/** Converts a manifest of one of Flagger's kinds; undefined for every other manifest. */
export const flagger = (value: Json): Conversion | undefined =>
  value.apiVersion === flaggerVersion && Object.hasOwn(converters, String(value.kind))
    ? converters[String(value.kind)]!(value)
    : undefined

/** Said once, whatever the number of manifests. */
const takeOver =
  "Flagger must not act on a workload that aim has: the guide From Flagger (docs/guides/from-flagger.md) takes over with no failed request"

function canary(value: Json): Conversion {
  const remarks: Remark[] = []
  const { spec, isRenamed } = withAnalysis(value.spec, remarks)
  return examined(Canary, value, spec, remarks, object => {
    const converted = object as unknown as Canary
    // Lines are looked up in the manifest as it was written.
    const at = (field: string) => (isRenamed ? field.replace(/^spec\.analysis\b/, "spec.canaryAnalysis") : field)
    const reach = reachOf(value, addressesOf(converted))
    return {
      remarks: [
        ...findingsOf(converted).map(remarkOf),
        ...differencesOf(converted),
        ...ofPrimary(converted),
        ...sharedNamespaces(converted),
        ...reach.remarks,
        ...leftOf(converted, value.status),
      ].map(({ path, message }) => ({ path: at(path), message })),
      allowances: reach.allowances,
      notes: [takeOver],
    }
  })
}

/** Flagger reads canaryAnalysis where there is no analysis; its definition does not have it. */
function withAnalysis(spec: unknown, remarks: Remark[]): { spec: unknown; isRenamed: boolean } {
  if (!isObject(spec) || !Object.hasOwn(spec, "canaryAnalysis")) return { spec, isRenamed: false }
  const { canaryAnalysis, ...rest } = spec
  const path = "spec.canaryAnalysis"
  if (isObject(rest.analysis)) {
    remarks.push({ path, message: "dropped: analysis is there too, and counts" })
    return { spec: rest, isRenamed: false }
  }
  remarks.push({ path, message: "renamed to analysis" })
  return { spec: { ...rest, analysis: canaryAnalysis }, isRenamed: true }
}

function metricTemplate(value: Json): Conversion {
  const remarks: Remark[] = []
  return examined(MetricTemplate, value, withoutSockets(value.spec, remarks), remarks, object => {
    const template = object as unknown as MetricTemplate
    const reach = reachOf(value, addressesOfTemplate(template))
    const { secretRef } = template.spec.provider
    return {
      remarks: [
        ...findingsOfTemplate(template).map(remarkOf),
        ...differencesOfTemplate(template),
        ...ofPrimary(template),
        ...reach.remarks,
        ...grantRemark(value, "spec.provider.secretRef", secretRef),
      ],
      allowances: reach.allowances,
    }
  })
}

/** Flagger takes the address of Splunk's sockets too; aim asks by HTTP at the same host. */
function withoutSockets(spec: unknown, remarks: Remark[]): unknown {
  if (!isObject(spec) || !isObject(spec.provider)) return spec
  const { address } = spec.provider
  if (typeof address !== "string" || !/^wss?:/.test(address)) return spec
  remarks.push({ path: "spec.provider.address", message: "asked by HTTP: written as http" })
  return { ...spec, provider: { ...spec.provider, address: address.replace(/^ws/, "http") } }
}

function alertProvider(value: Json): Conversion {
  return examined(AlertProvider, value, value.spec, [], object => {
    const { spec } = object as unknown as AlertProvider
    const reach = reachOf(value, addressesOfProvider(object as unknown as AlertProvider))
    return {
      remarks: [
        ...(spec.proxy
          ? [{ path: "spec.proxy", message: "not supported: no alert is sent until it is left out" }]
          : []),
        ...reach.remarks,
        ...grantRemark(value, "spec.secretRef", spec.secretRef),
      ],
      allowances: reach.allowances,
    }
  })
}

type Found = { remarks: Remark[]; allowances: string[]; notes?: string[] }

/** Converts by another apiVersion alone; what is then said of it is said of the object as the server would store it. */
function examined(
  kind: Kind,
  value: Json,
  spec: unknown,
  remarks: Remark[],
  look: (object: Json) => Found,
): Conversion {
  const conversion = judged(kind, value, spec, remarks)
  if (!conversion.ok) return conversion
  const { object } = validate(kind, conversion.objects[0])
  const found = look(object as unknown as Json)
  return { ...conversion, ...found, remarks: [...found.remarks, ...conversion.remarks] }
}

const remarkOf = ({ field, message, kind }: Finding): Remark => ({
  path: field,
  message: kind === "Refused" ? `aim refuses it: ${message}` : message,
})

/** The namespace as it may stand in a flag that is copied into a shell. */
function namespaceOf({ metadata }: Json): string {
  const namespace = isObject(metadata) ? metadata.namespace : undefined
  return typeof namespace === "string" && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace) ? namespace : "NAMESPACE"
}

/** Flagger connects to every address; aim to public ones, and to Services of the own namespace. */
function reachOf(value: Json, addresses: readonly NamedAddress[]): { remarks: Remark[]; allowances: string[] } {
  const namespace = namespaceOf(value)
  const remarks: Remark[] = []
  const allowances: string[] = []
  for (const { field: path, url, isUnchecked } of addresses) {
    // The rules compare names of namespaces, which are in lower case.
    const seen = foresee({ namespace: namespace.toLowerCase(), url, isUnchecked })
    if (seen.need === "Change") remarks.push({ path, message: `aim does not connect to it: ${seen.why}` })
    if (seen.need !== "Allowance") continue
    const flag = seen.flag.replace(/^--allow-egress [^=]*=/, `--allow-egress ${namespace}=`)
    allowances.push(flag)
    const unless = seen.isCertain ? "" : ", unless it is a public host"
    remarks.push({ path, message: `an administrator must allow it with ${flag}${unless}: ${seen.why}` })
  }
  return { remarks, allowances }
}

function grantRemark(value: Json, path: string, secret: { name: string } | undefined): Remark[] {
  if (!secret) return []
  const command = `aim grant ${namespaceOf(value)} --secrets ${secret.name}`
  return [{ path, message: `aim reads a Secret only where it is granted: run \`${command}\`` }]
}
