import type { PullCredentials } from "#runtime/cri/container-runtime.ts"
import type { Json, Obj } from "../../object.ts"
import type { FindReferred } from "./references.ts"

/** The accounts in a pod's pull secrets. A secret that is missing or broken is skipped, as the kubelet does. */
export function pullCredentials({ spec }: Obj, find: FindReferred): PullCredentials[] {
  return (spec.imagePullSecrets ?? []).flatMap(({ name }: Json) => {
    const text = find("Secret", name)?.data?.[".dockerconfigjson"]
    return text ? accountsIn(Buffer.from(text, "base64").toString("utf8")) : []
  })
}

function accountsIn(text: string): PullCredentials[] {
  let auths: Record<string, Json>
  try {
    auths = JSON.parse(text).auths ?? {}
  } catch {
    return []
  }
  return Object.entries(auths).map(([key, { username, password, auth = "", identitytoken }]) => {
    const host = key
      .replace(/^https?:\/\//, "")
      .replace(/\/.*$/, "")
      .replace(/^index\.docker\.io$/, "docker.io")
    if (identitytoken) return { host, identityToken: identitytoken }
    if (username) return { host, username, password: password ?? "" }
    const [user = "", ...rest] = Buffer.from(auth, "base64").toString("utf8").split(":")
    return { host, username: user, password: rest.join(":") }
  })
}
