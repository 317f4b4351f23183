import { parse } from "yaml"
import type { Access } from "#tools/kube/api.ts"

/** How to reach the cluster of a kubeconfig that `aim up` wrote. */
export function accessIn(kubeconfig: string): Access {
  const { clusters, users } = parse(kubeconfig)
  const { server, "certificate-authority-data": authority } = clusters[0].cluster
  return { server, certificateAuthority: Buffer.from(authority, "base64").toString(), token: users[0].user.token }
}
