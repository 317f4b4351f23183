import { z } from "zod"
import { rules } from "../fields.ts"

export const imageReferenceMaxLength = 512

const hostLabel = "[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"
const port = ":[0-9]+"
// The part before the first slash is a host only if it has a dot, a port or brackets; otherwise it is part of the path.
const host = `(${hostLabel}([.]${hostLabel})*${port}|${hostLabel}([.]${hostLabel})+|[[][0-9A-Fa-f:]+[]](${port})?)`
const firstPart = "[a-z0-9]+((_|__|-+)[a-z0-9]+)*"
const pathPart = "[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*"
const tag = ":[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}"
const digest = "@(sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})"

const name = `((${host}|${firstPart})/(${pathPart}/)*)?${pathPart}`
// Nodes treat it as the ID of a local image.
const bareId = "[a-f0-9]{64}"

/** What `core/image/reference.ts` parses, as a CEL rule; "" means "not given". Lengths of the parts are checked there only. */
export const imageReferenceRule = {
  rule: `self == '' || (self.matches('^${name}(${tag})?(${digest})?$') && !self.matches('^${bareId}$'))`,
  message:
    "write an image as [HOST[:PORT]/]PATH[:TAG][@DIGEST], such as registry.example.com/team/app:v2; the path is in lower case, and a bare 64-digit ID is not a name",
}

export const repositoryMaxLength = 255

/** What `core/image/equivalent.ts` accepts as a repository, as a CEL rule. */
export const repositoryRule = {
  rule: `self.matches('^${name}$') && !self.matches('^${bareId}$')`,
  message:
    "write a repository as [HOST[:PORT]/]PATH without tag or digest, such as quay.io/team/app; the path is in lower case",
}

/** A repository: an image reference without tag and digest. */
export const repository = () => z.string().max(repositoryMaxLength).meta(rules(repositoryRule))

/** A container image with tag or digest, or "". */
export const imageReference = () => z.string().max(imageReferenceMaxLength).meta(rules(imageReferenceRule))
