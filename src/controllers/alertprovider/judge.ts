import type { AlertProvider, Reason } from "#api/v1alpha1/alertprovider/index.ts"
import type { Seen } from "../usable.ts"

/** The first reason for which no alert can be sent to it. An address in a Secret is quoted nowhere: it holds a token. */
export function judge({ object, secret, unreachable }: Seen<AlertProvider>): { reason: Reason; message: string } {
  const { type, address, secretRef, proxy } = object.spec
  if (proxy) return { reason: "NotSupported", message: "spec.proxy is not supported: leave it out" }
  if (secret && !secret.ok) return secret
  const hidden = secret?.keys.get("address")?.toString("utf8").trim()
  if (address === undefined && !hidden)
    return {
      reason: "SecretMissing",
      message: `Secret ${secretRef?.name} has no key address: write one with the address of the ${type}`,
    }
  const forbidden = unreachable({ url: address ?? hidden! })
  if (forbidden && address === undefined)
    return {
      reason: forbidden.reason,
      message: `the key address of Secret ${secretRef?.name} ${hiddenProblems[forbidden.reason]}`,
    }
  if (forbidden) return { ...forbidden, message: `spec.address: ${forbidden.message}` }
  return { reason: "Usable", message: `Canaries can send alerts to ${type} with it` }
}

const hiddenProblems = {
  InvalidAddress: "is no address: write https://HOST/PATH without a user and a password",
  AddressForbidden:
    "is neither a public address nor a Service of this namespace: an administrator may allow it with --allow-egress",
}
