import { createHmac, timingSafeEqual } from "node:crypto"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { quote } from "../apiserver/refusals.ts"
import type { KindStorage } from "../apiserver/storage.ts"
import type { Json, Obj } from "../object.ts"
import { quotedList } from "./rules.ts"
import { accountGroups, accountUser } from "./service-account.ts"
import type { User } from "./user.ts"

/** Names the server as issuer of tokens and as their audience. */
export const issuer = "https://kubernetes.default.svc"

export type TokenOptions = { storage: KindStorage; clock: Clock; random: Random; key: string }

/** The content of a new token. */
export type Grant = {
  account: Obj
  audiences: readonly string[]
  seconds: number
  /** The token becomes invalid when one of these is deleted. A pod brings its node. */
  bound?: { pod?: Reference; node?: Reference; secret?: Reference }
}

type Reference = { name: string; uid?: string }

/** Thrown for a token that is not ours, or not accepted any more, or not for this audience. */
export class TokenRefused extends Error {
  override name = "TokenRefused"

  constructor(why?: string) {
    super(why ? `[invalid bearer token, ${why}]` : "invalid bearer token")
  }
}

export type Tokens = {
  issue(grant: Grant): string
  /** The account's user; undefined: not a token of ours. */
  userOf(token: string, audiences?: readonly string[]): { user: User; audiences: string[] } | undefined
}

const leewayMs = 60_000 // an object that is being deleted counts as present for this long

/** Signed tokens of service accounts. They are like real ones, with a key that only this process has. */
export function createTokens({ storage, clock, random, key }: TokenOptions): Tokens {
  const encoded = (value: Json) => Buffer.from(JSON.stringify(value)).toString("base64url")
  const signed = (text: string) => createHmac("sha256", key).update(text).digest()
  const find = (kind: string, name: string, namespace?: string) => {
    const served = storage.kind("v1", kind)
    return served && storage.find(served, namespace === undefined ? { name } : { namespace, name })
  }
  const isGoing = ({ metadata: { deletionTimestamp } }: Obj) =>
    deletionTimestamp !== undefined && Date.parse(deletionTimestamp) < clock.now() - leewayMs

  function checkBound(kind: string, { name, uid = "" }: Reference, namespace?: string) {
    const found = find(kind, name, namespace)
    if (!found || isGoing(found)) throw new TokenRefused("service account token has been invalidated")
    const words = kind.toLowerCase()
    if (found.metadata.uid !== uid)
      throw new TokenRefused(
        `${kind} UID (${found.metadata.uid}) does not match service account ${words} ref claim (${uid})`,
      )
  }

  function check({ exp, nbf, "kubernetes.io": about }: Json) {
    const now = clock.now()
    if (now - leewayMs > exp * 1000) throw new TokenRefused("service account token has expired")
    if (now + leewayMs < nbf * 1000) throw new TokenRefused("service account token is not valid yet")
    const { namespace, serviceaccount, pod, secret, node } = about
    const account = find("ServiceAccount", serviceaccount.name, namespace)
    if (!account) throw new TokenRefused(`serviceaccounts ${quote(serviceaccount.name)} not found`)
    if (account.metadata.uid !== serviceaccount.uid)
      throw new TokenRefused(
        `service account UID (${account.metadata.uid}) does not match claim (${serviceaccount.uid})`,
      )
    if (isGoing(account)) throw new TokenRefused(`service account ${namespace}/${serviceaccount.name} has been deleted`)
    if (secret) checkBound("Secret", secret, namespace)
    if (pod) checkBound("Pod", pod, namespace)
    else if (node) checkBound("Node", node)
  }

  return {
    issue({ account, audiences, seconds, bound = {} }) {
      const { name, namespace = "", uid } = account.metadata
      const now = Math.floor(clock.now() / 1000)
      const claims = {
        aud: audiences,
        exp: now + seconds,
        iat: now,
        iss: issuer,
        jti: random.uuid(),
        "kubernetes.io": { namespace, ...bound, serviceaccount: { name, uid } },
        nbf: now,
        sub: accountUser(namespace, name),
      }
      const text = `${encoded({ alg: "HS256", kid: "cluster-sim" })}.${encoded(claims)}`
      return `${text}.${signed(text).toString("base64url")}`
    },
    userOf(token, audiences = [issuer]) {
      const claims = read(token, signed)
      if (!claims) return undefined
      const accepted = claims.aud.filter((each: string) => audiences.includes(each))
      if (accepted.length === 0)
        throw new TokenRefused(
          `token audiences ${quotedList(claims.aud)} is invalid for the target audiences ${quotedList(audiences)}`,
        )
      check(claims)
      return { user: userIn(claims), audiences: accepted }
    },
  }
}

/** The claims of a token with our signature. */
function read(token: string, signed: (text: string) => Buffer): Json | undefined {
  const [header = "", body = "", signature = "", ...more] = token.split(".")
  const [is, ought] = [Buffer.from(signature, "base64url"), signed(`${header}.${body}`)]
  if (more.length > 0 || is.length !== ought.length || !timingSafeEqual(is, ought)) return undefined
  return JSON.parse(Buffer.from(body, "base64url").toString("utf8"))
}

function userIn({ jti, "kubernetes.io": { namespace, serviceaccount, pod, node } }: Json): User {
  const say = (key: string, value: string | undefined) =>
    value === undefined ? {} : { [`authentication.kubernetes.io/${key}`]: [value] }
  return {
    name: accountUser(namespace, serviceaccount.name),
    uid: serviceaccount.uid,
    groups: [...accountGroups(namespace), "system:authenticated"],
    extra: {
      ...say("credential-id", `JTI=${jti}`),
      ...say("node-name", node?.name),
      ...say("node-uid", node?.uid),
      ...say("pod-name", pod?.name),
      ...say("pod-uid", pod?.uid),
    },
  }
}
