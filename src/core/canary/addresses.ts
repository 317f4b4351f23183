import type { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { addressOf } from "./metric-services/index.ts"

/** An address that a manifest names, and that is connected to on behalf of its namespace. */
export type NamedAddress = {
  readonly field: string
  readonly url: string
  /** Its certificate is not checked. */
  readonly isUnchecked: boolean
}

export const addressesOf = ({ spec }: Canary): readonly NamedAddress[] => [
  ...(spec.metricsServer ? [{ field: "spec.metricsServer", url: spec.metricsServer, isUnchecked: false }] : []),
  ...spec.analysis.webhooks.map(({ url, disableTLS }, index) => ({
    field: `spec.analysis.webhooks[${index}].url`,
    url,
    isUnchecked: disableTLS,
  })),
  ...(spec.rolloutPlan?.rolloutWebhooks ?? []).map(({ url }, index) => ({
    field: `spec.rolloutPlan.rolloutWebhooks[${index}].url`,
    ...{ url, isUnchecked: false },
  })),
]

export function addressesOfTemplate({ spec: { provider } }: MetricTemplate): readonly NamedAddress[] {
  const url = addressOf(provider)
  return url ? [{ field: "spec.provider.address", url, isUnchecked: provider.insecureSkipVerify }] : []
}

export const addressesOfProvider = ({ spec: { address } }: AlertProvider): readonly NamedAddress[] =>
  address ? [{ field: "spec.address", url: address, isUnchecked: false }] : []
